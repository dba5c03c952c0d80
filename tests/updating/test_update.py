"""A run day by day: promoted, kept, rolled back, killed and gone on, damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.updating.days import FIRST, SECOND, THIRD, change, new_run, settings_for, write_day

from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError, UltrError
from ultr.evaluation import unseen_part
from ultr.methods import ClickBaseline, load
from ultr.methods.model_file import weights_digest
from ultr.relevance import MLP
from ultr.scoring import Scorer
from ultr.updating import Ledger, RunFolder, begin, roll_back, update
from ultr.updating.candidate import NewRanker, Shares
from ultr.updating.run_folder import digest_of_file
from ultr.updating.settings import UpdateSettings


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one day, and the raw logs of two more."""
    folder = tmp_path_factory.mktemp("begun")
    new_run(folder)
    return folder


@pytest.fixture(scope="module")
def promoted(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same a day later, with a second model."""
    folder = tmp_path_factory.mktemp("promoted") / "all"
    shutil.copytree(begun, folder)
    update(RunFolder(folder / "run"), SECOND)
    return folder


@pytest.fixture
def run(begun: Path, tmp_path: Path) -> RunFolder:
    return _copy(begun, tmp_path)


@pytest.fixture
def second(promoted: Path, tmp_path: Path) -> RunFolder:
    return _copy(promoted, tmp_path)


def _copy(folder: Path, target: Path) -> RunFolder:
    shutil.copytree(folder, target / "all")
    return RunFolder(target / "all" / "run")


def _state(run: RunFolder) -> dict[str, Any]:
    """All that a later call goes by; times are left out."""
    entries = [entry.model_dump(exclude={"at", "previous", "training"}) for entry in run.ledger().entries]
    digests = [entry.training.get("weights_digest") for entry in run.ledger().entries]
    return {"entries": entries, "weights": digests, "served": digest_of_file(run.served)}


def test_a_better_or_equal_ranker_takes_the_place_of_the_old_one(second: RunFolder) -> None:
    first, entry = second.ledger().entries
    assert entry.decision == "promoted"
    assert (entry.model, entry.day, entry.log) == (SECOND, SECOND, SECOND)
    assert second.served.read_bytes() == second.exported(SECOND).read_bytes() != second.exported(FIRST).read_bytes()
    assert Scorer.load(second.served).card.model_digest == weights_digest(load(second.model(SECOND)).model)
    assert ClickLog.load(second.log(SECOND)).period_names == (FIRST, SECOND)
    assert entry.training["init_model"] == first.training["weights_digest"]
    assert entry.judgement["gain"]["low"] >= -second.settings.tolerance
    assert {"volume", "identifiability"} <= entry.doctor.keys()
    assert entry.versions.keys() >= {"ultr", "torch", "numpy"}
    counts = entry.data
    parts = [counts[name]["clicks"] for name in ("trained_on", "chosen_by", "compared_on")]
    assert sum(parts) == counts["log"]["clicks"]


def test_no_ranker_of_the_run_has_seen_the_queries_that_decide(second: RunFolder) -> None:
    log = ClickLog.load(second.log(SECOND))
    rankers = {day: load(second.model(day)) for day in (FIRST, SECOND)}
    found = unseen_part(rankers, log)
    reserved = log.split(0.3, by="hash")[1]
    assert not found.warnings
    assert not found.notes
    assert found.log.fingerprint() == reserved.fingerprint()
    assert second.ledger().last.judgement["remarks"] == []


def test_beyond_the_tolerance_the_old_one_is_kept_and_the_day_is_in_the_log(run: RunFolder) -> None:
    before = run.served.read_bytes()
    run = change(run, tolerance=0.0)
    entry = update(run, SECOND)
    assert entry.decision == "kept"
    assert entry.judgement["gain"]["low"] < 0
    assert "tolerated" in entry.reason
    assert (entry.model, entry.log, entry.candidate) == (FIRST, SECOND, SECOND)
    assert run.served.read_bytes() == before
    assert run.current_log(run.ledger()) == run.log(SECOND)
    assert load(run.model(SECOND)).method == "click"


def test_a_day_comes_once_and_in_order(second: RunFolder) -> None:
    before = _state(second)
    for day, said in ((SECOND, "done already"), (FIRST, "done already"), ("2026-03-01", "not after"), ("x", "a date")):
        with pytest.raises(OptionError, match=said):
            update(second, day)
    assert _state(second) == before


def test_a_rollback_is_one_call_and_the_next_day_begins_with_it(second: RunFolder) -> None:
    assert roll_back(second, dry_run=True).model == FIRST
    assert digest_of_file(second.served) == second.ledger().last.file_digest
    entry = roll_back(second)
    assert (entry.decision, entry.model) == ("rolled back", FIRST)
    assert second.served.read_bytes() == second.exported(FIRST).read_bytes()
    with pytest.raises(OptionError, match="first model"):
        roll_back(second)
    with pytest.raises(OptionError, match="done already"):
        update(second, SECOND)
    later = update(second, THIRD)
    assert later.training["init_model"] == weights_digest(load(second.model(FIRST)).model)
    assert [each.model for each in second.ledger().served] == [FIRST, THIRD]


def test_a_dry_run_decides_nothing_and_the_next_call_uses_its_work(run: RunFolder, promoted: Path) -> None:
    before = _state(run)
    entry = update(run, SECOND, dry_run=True)
    assert entry.decision == "promoted"
    assert _state(run) == before
    trained = (run.model(SECOND) / "weights.safetensors").stat().st_mtime_ns
    update(run, SECOND)
    assert (run.model(SECOND) / "weights.safetensors").stat().st_mtime_ns == trained
    assert _state(run) == _state(RunFolder(promoted / "run"))


@pytest.mark.parametrize(
    "where",
    ["actions.diagnose", "actions.export", "actions.judge", "ledger.write_json", "run_folder.new_file"],
)
def test_killed_anywhere_the_next_call_ends_as_if_nothing_had_happened(
    run: RunFolder, promoted: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"ultr.updating.{where}", die)
        with pytest.raises(Killed):
            update(run, SECOND)
    if where == "run_folder.new_file":
        # The decision is in the ledger, and the file is not exchanged yet: whoever comes next does it.
        assert digest_of_file(run.served) != run.ledger().last.file_digest
        with pytest.raises(OptionError, match="done already"):
            update(run, SECOND)
        assert digest_of_file(run.served) == run.ledger().last.file_digest
    else:
        update(run, SECOND)
    assert _state(run) == _state(RunFolder(promoted / "run"))


def test_two_calls_at_once_are_refused(run: RunFolder) -> None:
    with run.alone(), pytest.raises(OptionError, match="another update"):
        update(run, SECOND)


def test_only_so_many_models_and_the_last_log_are_kept(second: RunFolder) -> None:
    second = change(second, keep=1, days=2)
    update(second, THIRD)
    assert sorted(path.name for path in (second.path / "models").iterdir()) == [
        SECOND,
        f"{SECOND}.onnx",
        THIRD,
        f"{THIRD}.onnx",
    ]
    assert [path.name for path in (second.path / "logs").iterdir()] == [THIRD]
    assert ClickLog.load(second.log(THIRD)).period_names == (SECOND, THIRD)
    roll_back(second)
    with pytest.raises(DataError, match="not kept any more"):
        roll_back(second)


def test_pages_of_another_day_are_refused(run: RunFolder) -> None:
    source = Path(run.source(SECOND))
    shutil.copy(write_day(source.parent / "other", THIRD), source)
    before = _state(run)
    with pytest.raises(DataError, match=f"must have the pages of {SECOND} and no others, and has those of {THIRD}"):
        update(run, SECOND)
    assert _state(run) == before


@pytest.mark.parametrize(("pages", "refused"), [(200, True), (2, False)])
def test_a_day_without_a_click_where_many_would_be_usual_is_refused(
    run: RunFolder,
    pages: int,
    refused: bool,  # noqa: FBT001
) -> None:
    source = Path(run.source(SECOND))
    day = parquet.read_table(write_day(source.parent / "other", SECOND, pages=pages))
    parquet.write_table(day.set_column(4, "click", pyarrow.array([0] * len(day))), source)
    before = _state(run)
    if refused:
        with pytest.raises(DataError, match=rf"no click on {pages} pages, where \d+ would be usual.*was not added"):
            update(run, SECOND)
        assert _state(run) == before
    else:
        assert update(run, SECOND).data["log"]["impressions"] == 1_500 + pages


@pytest.mark.parametrize("damage", ["settings", "setting", "ledger", "weights", "log", "served", "exported"])
def test_a_damaged_run_is_one_sentence_and_stays_as_it_is(second: RunFolder, damage: str) -> None:
    paths = {
        "settings": second.path / "settings.toml",
        "setting": second.path / "settings.toml",
        "ledger": second.path / "ledger" / "000001.json",
        "weights": second.model(SECOND) / "weights.safetensors",
        "log": second.log(SECOND) / "clicks.npy",
        "served": second.served,
        "exported": second.exported(FIRST),
    }
    path, served = paths[damage], second.served.read_bytes()
    content = path.read_bytes()
    path.write_bytes(b"tolerence = 1\n" + content if damage == "setting" else content[: len(content) // 2])
    served = path.read_bytes() if damage == "served" else served
    with pytest.raises(UltrError, match=r"restore|save the model again|one of|put there"):
        roll_back(RunFolder(second.path)) if damage == "exported" else update(RunFolder(second.path), THIRD)
    assert second.served.read_bytes() == served


def test_a_run_can_begin_with_what_is_served_already(begun: Path, tmp_path: Path) -> None:
    shutil.copytree(begun / "log", tmp_path / "log")
    model = tmp_path / "model"
    ranker = ClickBaseline(relevance=MLP(hidden=(8,), steps=5)).fit(ClickLog.load(tmp_path / "log")).ranker_
    ranker.save(model)
    ranker.export(tmp_path / "served.onnx", form="flat")
    before = (tmp_path / "served.onnx").read_bytes()
    for given, said in ((None, "served already"), (begun / "run" / "models" / FIRST, "not exported from")):
        with pytest.raises(OptionError, match=said):
            begin(tmp_path / "run", settings_for(), model=given)
        assert not (tmp_path / "run").exists()
    entry = begin(tmp_path / "run", settings_for(), model=model)
    assert (tmp_path / "served.onnx").read_bytes() == before
    assert entry.training["weights_digest"] == weights_digest(ranker.model)
    with pytest.raises(OptionError, match="a run already"):
        begin(tmp_path / "run", settings_for(), model=model)
    write_day(tmp_path / "clicks", SECOND)
    remarks = update(RunFolder(tmp_path / "run"), SECOND).judgement["remarks"]
    # The new ranker has begun with the served one, and has seen what that one has.
    assert any("served and new were trained on other data" in each for each in remarks)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(OptionError, match="holds other files"):
        begin(tmp_path / "run", settings_for())
    with pytest.raises(OptionError, match="no folder of a run"):
        update(RunFolder(tmp_path / "run"), SECOND)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_the_ledger_alone_says_what_is_served(second: RunFolder) -> None:
    second.served.unlink()
    update(second, THIRD, dry_run=True)
    assert digest_of_file(second.served) == Ledger.read(second.path / "ledger").served[-1].file_digest


@pytest.mark.parametrize("seeds", [1, 2])
def test_checkpoints_that_are_worth_nothing_are_begun_anew(seeds: int, small_log: ClickLog, tmp_path: Path) -> None:
    given = {"method": "click", "options": {"steps": 2, "hidden": [4], "seeds": seeds}}
    settings = UpdateSettings.of({"log": "log", "source": "{day}", "served": "x.onnx", **given}, where="here")
    checkpoint = tmp_path / ".day.checkpoint"
    left = [checkpoint] if seeds == 1 else [Path(f"{checkpoint}-seed-{seed}") for seed in range(seeds)]
    left[-1].write_bytes(b"left by a call that was killed")
    kept, held_out = small_log.split()
    assert NewRanker.train(Shares(kept, held_out, held_out), settings, None, checkpoint=checkpoint).ranker
