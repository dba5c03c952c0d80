from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.__main__ import Benchmark
from benchmarks.kept_tables import keep, tables
from benchmarks.measurement import Measurement, read, write

from benchmarks import __main__ as frame
from ultr.experiments.stored_tables import StoredTables
from ultr.pages import Table

ROOT = Path(__file__).parents[2]
TINY = Benchmark("simulator", ("--sessions", "20000"))
BROKEN = Benchmark("simulator", ("--sessions", "many"))


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_numbers_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    numbers = [Measurement("rate", 2.5, "lists/s"), Measurement("ratio", 3.0, "times", 2.0, 4.0, headline=True)]
    write(numbers, tmp_path / "numbers.json")
    assert read(tmp_path / "numbers.json") == numbers
    assert [str(each).split() for each in numbers] == [
        ["rate", "2.5", "lists/s"],
        ["ratio", "3", "times", "(2", "to", "4)"],
    ]


def test_one_file_holds_the_machine_and_what_every_benchmark_found(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "benchmarks.json"
    results = frame.run([TINY, TINY], file)
    content = json.loads(file.read_text())
    assert content["machine"]["cores"] >= 1
    assert {"numpy", "torch"} <= set(content["machine"]["packages"])
    assert [each["name"] for each in content["benchmarks"]] == ["simulator", "simulator"]
    assert content["benchmarks"][0]["command"] == ["python", "-m", "benchmarks.simulator", "--sessions", "20000"]
    kept = [Measurement(**each) for each in content["benchmarks"][0]["measurements"]]
    assert kept == results[0].measurements
    assert all(each.value > 0 for each in kept)
    printed = capfd.readouterr().out
    assert all(str(each) in printed for each in kept)


def test_tables_are_found_in_what_was_printed_under_the_line_above_them() -> None:
    printed = "12 lists\n\nreal clicks:\n\n| | ms |\n|---|---|\n| DLA | 1.0 |\n| a, b |  |\n\nlast\n| x |\n|---|\n| 2 |"
    assert list(tables(printed)) == [
        Table("real clicks", [{"": "DLA", "ms": "1.0"}, {"": "a, b", "ms": ""}]),
        Table("last", [{"x": "2"}]),
    ]
    assert list(tables("no table\n")) == []
    (twice,) = tables("| ms | x | ms |\n|---|---|---|\n| 1 | 2 | 3 |")
    assert twice.rows == [{"ms": "1", "x": "2", "ms (2)": "3"}]


def test_what_a_benchmark_found_is_kept_for_the_documentation_unless_it_failed(tmp_path: Path) -> None:
    file = tmp_path / "tables" / "simulator.json"
    assert keep(file, BROKEN.name, BROKEN.options) == (2, [])
    assert not file.exists()
    code, found = keep(file, TINY.name, TINY.options)
    stored = StoredTables.read(file)
    assert code == 0
    assert stored.command == "python -m benchmarks.simulator --sessions 20000"
    assert [row["what"] for row in stored.tables[0].rows] == [each.name for each in found]
    assert [Measurement(**each) for each in stored.numbers["measurements"]] == found
    assert stored.numbers["machine"]["cores"] >= 1


def test_a_folder_of_this_machine_is_not_named_in_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.kept_tables._shown", lambda command: (0, "| x |\n|---|\n| 2 |\n"))
    keep(tmp_path / "peers.json", "peers", ["--data", f"mq2007={tmp_path}", "--folder", str(tmp_path), "--seeds", "1"])
    stored = StoredTables.read(tmp_path / "peers.json")
    assert [table.title for table in stored.tables] == ["peers"], "nothing stands above the table"
    told = stored.command
    assert told == "python -m benchmarks.peers --data mq2007=FOLDER --folder FOLDER --seeds 1"


def test_a_benchmark_that_fails_is_named_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(frame, "BENCHMARKS", (BROKEN, TINY))
    file = tmp_path / "benchmarks.json"
    assert frame.main(["--json", str(file)]) == 1
    broken, whole = json.loads(file.read_text())["benchmarks"]
    assert (broken["exit_code"], broken["measurements"]) == (2, [])
    assert whole["exit_code"] == 0
    headlines = [str(Measurement(**each)) for each in whole["measurements"] if each["headline"]]
    summary = capfd.readouterr().out.split("== summary")[1]
    assert "FAILED with exit code 2" in summary.splitlines()[1]
    assert headlines
    assert summary.count(" clicks, ") == len(headlines)
    assert all(each in summary for each in headlines)


def test_long_benchmarks_run_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(benchmarks: list[Benchmark], path: Path) -> list[frame.Result]:
        ran.extend(benchmark.name for benchmark in benchmarks)
        return []

    monkeypatch.setattr(frame, "run", run)
    monkeypatch.setattr(frame, "BENCHMARKS", (Benchmark("short"), Benchmark("slow", long=True)))
    assert [frame.main(arguments) for arguments in ([], ["--all"], ["slow"])] == [0, 0, 0]
    assert ran == ["short", "short", "slow", "slow"]


def test_what_is_measured_grows_with_all_and_with_a_folder_of_mq2007(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, tuple[str, ...]]] = []

    def run(benchmarks: list[Benchmark], path: Path) -> list[frame.Result]:
        ran.extend((str(benchmark), benchmark.options) for benchmark in benchmarks)
        return []

    monkeypatch.setattr(frame, "run", run)
    monkeypatch.setattr(frame, "BENCHMARKS", (Benchmark("growth", ("--rows", "1"), whole=("--rows", "1", "2")),))
    monkeypatch.setattr(frame, "ON_MQ2007", (Benchmark("peers", ("--few",), whole=()),))
    frame.main(["--mq2007", "folder"])
    assert ran == [("growth", ("--rows", "1")), ("peers, mq2007", ("--few",))]
    ran.clear()
    frame.main(["growth", "--all", "--mq2007", "folder"])
    frame.main(["--all", "--mq2007", "folder"])
    assert ran == [("growth", ("--rows", "1", "2"))] * 2 + [("peers, mq2007", ())]


def test_an_unknown_benchmark_ends_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        frame.main(["trainig"])
    assert "there is no benchmark trainig; choose from training, reader" in capsys.readouterr().err


@pytest.mark.parametrize("benchmark", frame.BENCHMARKS, ids=lambda each: each.name)
def test_every_benchmark_is_a_module_that_keeps_its_numbers(benchmark: Benchmark) -> None:
    module = ROOT / "benchmarks" / f"{benchmark.name}.py"
    if not module.is_file():
        module = ROOT / "benchmarks" / benchmark.name / "__main__.py"
    assert '"--json"' in module.read_text()
    assert not benchmark.plots or '"--plot"' in module.read_text()
