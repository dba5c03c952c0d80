from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import ultr
from tests.evaluation.interleaved_log import LAST, NEW, OLD, Shown, outcomes_of, wins, write
from tests.serving.ranker_file import write_ranker

from ultr.arrays import Doubles
from ultr.errors import DataError
from ultr.evaluation.interleaved import compare_interleaved
from ultr.metrics.always_valid import vote_interval, votes_needed
from ultr.preparation.interleaved_lists import InterleavedLists, read_interleaved
from ultr.scoring import Scorer
from ultr.serving.team_draft import Draft


def clicks_of(found: InterleavedLists) -> dict[tuple[int, int], int]:
    """Numbers of lists by the clicks that both have won."""
    counts: Counter[tuple[int, int]] = Counter()
    for each, count in found.outcomes.items():
        assert each.clicks >= each.old + each.new
        counts[each.old, each.new] += count
    return dict(counts)


def outcomes(folder: Path, *lists: Shown, **options: object) -> dict[tuple[int, int], int]:
    (found,) = read_interleaved(write(folder, [*lists, LAST]), **options)  # type: ignore[arg-type]
    assert (found.old, found.new) == (OLD, NEW)
    return clicks_of(found)


def test_clicks_count_for_the_team_of_their_document(tmp_path: Path) -> None:
    lists = [Shown("1", [("x", 1)]), Shown("2", [("y", 1)]), Shown("3", [("x", 1), ("y", 2)]), Shown("4")]
    assert outcomes(tmp_path, *lists) == {(1, 0): 1, (0, 1): 1, (1, 1): 1, (0, 0): 1}


def test_clicks_that_give_no_credit_do_not_count(tmp_path: Path) -> None:
    again = Shown("1", [("y", 1), ("y", 2)])
    elsewhere = Shown("2", [("w", 1)])
    no_credit = Shown("3", [("z", 1)])
    late = Shown("4", [("y", 31)])
    another = Shown("5", [("y", 1)], action="purchase")
    assert outcomes(tmp_path, again, elsewhere, no_credit, late, another) == {(0, 1): 1, (0, 0): 4}
    assert outcomes(tmp_path, late, minutes=32) == {(0, 1): 1}
    assert outcomes(tmp_path, again, another, action="Purchase") == {(0, 1): 1, (0, 0): 1}


def test_lists_that_were_not_interleaved_do_not_count(tmp_path: Path) -> None:
    assert outcomes(tmp_path, Shown("1", [("y", 1)]), Shown("2", [("y", 1)], explore="swaps")) == {(0, 1): 1}


def test_a_list_counts_once_its_time_is_over(tmp_path: Path) -> None:
    old, young, newest = Shown("1", [("y", 1)]), Shown("2", [("y", 1)], hours=9.6), Shown("3", hours=10)
    (found,) = read_interleaved(write(tmp_path, [old, young, newest]))
    assert (clicks_of(found), found.young) == ({(0, 1): 1}, 2)
    (found,) = read_interleaved(tmp_path, minutes=0.5)
    assert (clicks_of(found), found.young) == ({(0, 0): 2}, 1)
    write(tmp_path, [newest])
    with pytest.raises(DataError, match="too young"):
        compare_interleaved(read_interleaved(tmp_path)[0])


def test_users_who_click_by_position_alone_favour_nobody_whatever_the_orders(tmp_path: Path) -> None:
    """All coins and all clicks on four places, once each. Votes for who has more clicks would favour one."""
    for number, rival in enumerate(([0, 3, 1, 2], [1, 2, 3, 0], [2, 0, 3, 1])):
        lists = []
        by_sum = 0
        for flips, clicked in product(range(4), product([False, True], repeat=4)):
            picks = Draft.of(rival, flips=flips).picks
            documents = [(str(pick.rank), str(pick.team), pick.is_credited) for pick in picks]
            clicks = [(name, 1.0) for (name, _, _), is_clicked in zip(documents, clicked, strict=True) if is_clicked]
            lists.append(Shown(f"{flips} {clicked}", clicks, documents=documents))
            gain = sum(
                (team == "new") - (team == "old")
                for (_, team, credited), is_clicked in zip(documents, clicked, strict=True)
                if credited and is_clicked
            )
            by_sum += (gain > 0) - (gain < 0)
        (found,) = read_interleaved(write(tmp_path / str(number), [*lists, LAST]))
        comparison = compare_interleaved(found)
        assert comparison.share is not None
        assert comparison.share.mean == pytest.approx(0.5, abs=1e-12)
        assert comparison.difference is not None
        assert comparison.difference.mean == 0
        assert (by_sum != 0) is (number == 0)


def test_all_that_was_clicked_shares_the_vote_of_a_list(tmp_path: Path) -> None:
    both = Shown("1", [("x", 1), ("z", 2), ("z", 3)])  # z gives no credit
    elsewhere = Shown("2", [("y", 1), ("w", 1)])  # w was not in the list
    late = Shown("3", [("y", 1), ("z", 31)])
    (found,) = read_interleaved(write(tmp_path, [both, elsewhere, late, LAST]))
    assert dict(found.outcomes) == {(1, 0, 2): 1, (0, 1, 1): 2}


def test_a_list_whose_id_another_list_has_is_left_out_interleaved_or_not(tmp_path: Path) -> None:
    plain = Shown("1", [("y", 1)], explore="none")
    (found,) = read_interleaved(write(tmp_path, [plain, Shown("1", hours=2), Shown("2", [("x", 1)]), LAST]))
    assert (clicks_of(found), found.repeated) == ({(1, 0): 1}, 1)


def test_a_click_before_its_list_is_on_another(tmp_path: Path) -> None:
    assert outcomes(tmp_path, Shown("1", [("y", -5)]), Shown("2", [("x", -0.01)])) == {(0, 0): 1, (1, 0): 1}


def test_lists_with_the_same_id_are_left_out(tmp_path: Path) -> None:
    twins = [Shown("1", [("y", 1)]), Shown("1", [("x", 1)], hours=5)]
    (found,) = read_interleaved(write(tmp_path, [*twins, Shown("2", [("x", 1)]), LAST]))
    assert (clicks_of(found), found.repeated) == ({(1, 0): 1}, 2)


def test_one_list_of_each_client_counts_the_first_that_somebody_won(tmp_path: Path) -> None:
    often = [Shown(f"often {number}", [("y", 1)], hours=number, client="often") for number in range(9)]
    first_tied = [Shown("tie", hours=1, client="b"), Shown("then", [("x", 1)], hours=2, client="b")]
    never = [Shown(f"never {number}", hours=number, client="c") for number in range(3)]
    nameless = Shown("nameless", [("x", 1)])
    lists = [*often, *first_tied, *never, nameless]
    assert outcomes(tmp_path, *lists, per_client=True) == {(0, 1): 1, (1, 0): 1, (0, 0): 1}
    assert sum(outcomes(tmp_path, *lists).values()) == len(lists)


def test_parquet_and_json_lines_are_read_alike(tmp_path: Path) -> None:
    lists = [*wins(3, 5, 4), Shown("both", [("x", 1), ("y", 1)], client="c")]
    found = read_interleaved(write(tmp_path / "json", lists))
    assert read_interleaved(write(tmp_path / "parquet", lists, as_parquet=True)) == found
    assert clicks_of(found[0]) == {(1, 0): 3, (0, 1): 5, (0, 0): 4, (1, 1): 1}


@pytest.mark.parametrize("as_parquet", [False, True])
def test_hours_before_the_first_interleaved_list_do_not_hide_the_others(tmp_path: Path, *, as_parquet: bool) -> None:
    write(tmp_path, [Shown("before", [("y", 1)], explore="none")], as_parquet=as_parquet, hour="1")
    write(tmp_path, wins(1, 2), as_parquet=as_parquet, hour="2")
    (found,) = read_interleaved(tmp_path)
    assert clicks_of(found) == {(1, 0): 1, (0, 1): 2}


def test_pairs_of_models_are_kept_apart_the_last_one_last(tmp_path: Path) -> None:
    lists = [Shown("1", [("y", 1)], hours=2), Shown("2", [("x", 1)], hours=1, pair=(NEW, OLD)), LAST]
    pairs = read_interleaved(write(tmp_path, lists))
    assert [(pair.old, pair.new, clicks_of(pair)) for pair in pairs] == [
        (NEW, OLD, {(1, 0): 1}),
        (OLD, NEW, {(0, 1): 1}),
    ]


def test_a_folder_without_interleaved_lists_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        read_interleaved(tmp_path / "nothing")
    with pytest.raises(DataError, match="has no ubi_queries"):
        read_interleaved(tmp_path)
    with pytest.raises(DataError, match="was interleaved; serve with --interleave"):
        read_interleaved(write(tmp_path, [LAST]))
    nobody = {name: value for name, value in Shown("1").query().items() if name != "client_id"}
    (tmp_path / "ubi_queries-2026.jsonl").write_text(json.dumps(nobody))
    with pytest.raises(DataError, match=r"no list of .* has a client_id"):
        read_interleaved(tmp_path, per_client=True)


def lists_of(outcomes: dict[tuple[int, int], int], *, per_client: bool = False) -> InterleavedLists:
    return InterleavedLists(OLD, NEW, 0, outcomes_of(outcomes), per_client=per_client)


def wins_of(wins: int, losses: int) -> tuple[Doubles, Doubles]:
    """Votes for either, and how many there are of each."""
    return np.array([1.0, 0.0]), np.array([wins, losses], dtype=np.float64)


def test_the_winner_is_who_has_more_votes_than_chance() -> None:
    found = compare_interleaved(lists_of({(0, 0): 700, (0, 1): 200, (1, 0): 100}))
    assert found.answer.winner == "new"
    assert (found.votes, found.clicks, found.lists) == (300, 300, 1_000)
    assert found.share == vote_interval(*wins_of(200, 100))
    assert found.difference is not None
    assert found.difference.mean == pytest.approx(0.1)
    assert found.difference.low > 0
    assert found.lists_needed is None
    turned = compare_interleaved(lists_of({(0, 0): 700, (1, 0): 200, (0, 1): 100}), names=("a.onnx", "b.onnx"))
    assert turned.answer.winner == "a.onnx"
    assert turned.answer.verdict == "a.onnx is better"


def test_one_user_who_clicks_everything_has_one_voice() -> None:
    found = compare_interleaved(lists_of({(0, 9): 1, (1, 0): 1}))
    assert found.share is not None
    assert found.share.mean == 0.5


def test_without_a_winner_it_says_how_much_is_missing() -> None:
    found = compare_interleaved(lists_of({(0, 0): 900, (0, 1): 55, (1, 0): 45}))
    assert found.answer.verdict == "cannot tell"
    assert "which holds 50%" in found.answer.reason
    # A tenth of the lists is won, by a tenth of a click per list.
    needed = (votes_needed(*wins_of(55, 45)) - 100) * 10
    assert found.lists_needed == needed
    assert found.clicks_needed == math.ceil(needed * 0.1)


def test_a_tie_needs_clicks_without_end() -> None:
    for outcome in ({(0, 1): 50, (1, 0): 50}, {(0, 0): 10}):
        found = compare_interleaved(lists_of(outcome))
        assert found.answer.verdict == "cannot tell"
        assert math.isinf(found.lists_needed or 0)


def test_the_command_says_who_won_and_stops_looking_at_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "shown", wins(60, 140, 300))
    said = ultr("compare", "--interleaved", str(tmp_path / "shown")).stdout
    assert said.startswith("new is better: new has 70.0% (")
    assert "of the votes of 200 lists" in said
    assert "+0.1600 per list more than old" in said
    assert OLD in said
    content = json.loads(ultr("compare", "--interleaved", str(tmp_path / "shown"), "--json").stdout)
    assert content["answer"]["winner"] == "new"
    assert (content["votes"], content["clicks"], content["lists"]) == (200, 200, 500)
    assert content["share"]["low"] == vote_interval(*wins_of(140, 60)).low
    assert (content["lists_needed"], content["old"], content["new"]) == (None, OLD, NEW)


@pytest.mark.parametrize(
    ("unit", "action", "won", "needed"),
    [
        ("list", "click", "Of clicks that give credit, new won +0.0100 per list more", "such clicks, make"),
        ("client", "click", "A 95 % interval, which holds at all looks together", "interleaved clients, with"),
        ("list", "purchase", "Of purchase events that give credit, new won", "such purchase events, make"),
    ],
)
def test_remarks_name_what_is_counted(unit: str, action: str, won: str, needed: str) -> None:
    lists = lists_of({(0, 0): 900, (0, 1): 55, (1, 0): 45}, per_client=unit == "client")
    said = compare_interleaved(lists).section(lists, action=action).advice
    assert won in said
    assert needed in said


def test_the_command_says_how_many_more_are_needed(tmp_path: Path) -> None:
    write(tmp_path / "shown", wins(45, 55, 100))
    said = ultr("compare", "--interleaved", str(tmp_path / "shown")).stdout
    assert said.startswith("cannot tell: new has 55.0% (")
    assert f"about {(votes_needed(*wins_of(55, 45)) - 100) * 2:,.0f} more interleaved lists" in said


def test_model_files_choose_the_pair(tmp_path: Path) -> None:
    files = [write_ranker(tmp_path / f"{seed}.onnx", seed=seed) for seed in (0, 1, 2)]
    digests = [Scorer.load(file).digest for file in files]
    mine = [Shown(f"m{number}", [("y", 1)], pair=(digests[0], digests[1])) for number in range(40)]
    folder = write(tmp_path / "shown", [*mine, Shown("1", [("x", 1)], hours=1), LAST])
    said = ultr("compare", str(files[0]), str(files[1]), "--interleaved", str(folder)).stdout
    assert said.startswith(f"{files[1]} is better")
    assert "Lists of other pairs are in the folder: aaaaaaaa and bbbbbbbb (1)" in said
    failed = ultr("compare", str(files[0]), str(files[2]), "--interleaved", str(folder), expect=2)
    assert f"has no list of {digests[0][:8]} and {digests[2][:8]}" in failed.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give two model folders and --log LOG, or --interleaved FOLDER"),
        (["--interleaved", "shown", "--log", "log"], "--log is for logs of one ranker"),
        (["--interleaved", "shown", "--utility", "dcg"], "--utility is for logs of one ranker"),
        (["--interleaved", "shown", "--weighting", "self-normalised"], "--weighting is for logs of one ranker"),
        (["--interleaved", "shown", "--seed", "1"], "--seed is for logs of one ranker"),
        (["a", "b", "--log", "log", "--action", "purchase"], "--action is for lists of two rankers"),
        (["a", "b", "--log", "log", "--minutes", "5"], "--minutes is for lists of two rankers"),
        (["a", "b", "--log", "log", "--per-client"], "--per-client is for lists of two rankers"),
        (["--interleaved", "shown", "--looks", "3"], "leave out --looks"),
        (["a.onnx", "--interleaved", "shown"], "give both files"),
        (["a.onnx", "b.onnx", "--interleaved", "shown"], "cannot read a.onnx"),
        (["--interleaved", "shown", "--minutes", "0"], "minutes must be"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("shown"), wins(1, 1))
    failed = ultr("compare", *options, expect=2)
    assert said in " ".join(failed.stderr.split())
