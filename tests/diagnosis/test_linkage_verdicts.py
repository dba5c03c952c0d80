"""Every sentence on the links between bias values, by graphs and sets of values made up by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.diagnosis.graphs import graph, places, sets

from ultr.bias.identifiability import BiasGraph
from ultr.bias.value_sets import ValueSets
from ultr.diagnosis import Verdict
from ultr.diagnosis.linkage import Linkage
from ultr.diagnosis.supported_dimension import SupportedDimension

GOOD, CAREFUL, BAD = Verdict.GOOD, Verdict.CAREFUL, Verdict.BAD
RANK = "the rank of their rates"
BELIEF = "nly the model's belief that documents with similar features are alike tells"


def linkage(whole: BiasGraph, seen: ValueSets, *, features: bool = True, **other: Any) -> Linkage:
    return Linkage(whole, None, SupportedDimension.of(whole, seen), features, **other)


THREE = graph((1, 2, 10, 200), (2, 3, 1, 120), names=places(3))
"""The link with the fewest clicks is not that with the fewest impressions."""
CHAIN = sets(3, ("12", 10, 200), ("23", 1, 120))
LINKED = (
    "Clicked documents that were seen under several values link all 3 positions; the weakest link that is needed, "
    "position 2 with position 3, rests on 1 document with 120 clicks."
)


def test_a_chain_of_links_identifies_one_number_for_each_position() -> None:
    found = linkage(THREE, CHAIN).section()
    assert (found.verdict, found.advice) == (GOOD, "")
    assert found.answer == (
        f"{LINKED} They identify one number for each position, but no vectors of dimension 2: these take 2 documents "
        "or more across every link, each seen under more than 2 values, and across position 1 with position 2 there "
        "are none."
    )


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (
            sets(3, ("12", 10, 200), ("23", 5, 120), ("123", 1, 9)),
            "they identify one number for each position, but no vectors of dimension 2: these take 2 documents or more "
            "across every link, each seen under more than 2 values, and across position 1 with position 2 there is 1",
        ),
        (
            sets(3, ("12", 10, 200), ("123", 2, 9)),
            "they identify bias vectors up to dimension 2, the most that 3 positions can",
        ),
    ],
)
def test_one_document_seen_everywhere_is_one_too_few_for_two_dimensions(seen: ValueSets, said: str) -> None:
    assert linkage(THREE, seen).section().answer == f"{LINKED} {said[0].upper()}{said[1:]}."


FOUR = graph((2, 3, 3, 400), (1, 2, 3, 500), (3, 4, 2, 600), names=places(4))
LINKED_FOUR = (
    "Clicked documents that were seen under several values link all 4 positions; the weakest link that is needed, "
    "position 2 with position 3, rests on 3 documents with 400 clicks."
)


@pytest.mark.parametrize(
    ("dimension", "complete", "wanted", "cuts", "said"),
    [
        (3, True, 1, True, "They identify bias vectors up to dimension 3, the most that 4 positions can."),
        (3, False, 1, True, "They identify bias vectors up to dimension 3, the most that 4 positions can."),
        (2, False, 1, True, "They identify bias vectors up to dimension 2 at least."),
        (1, False, 1, True, "They identify one number for each position at least."),
        (2, True, 1, True, "They identify bias vectors up to dimension 2."),
        (
            1,
            True,
            1,
            True,
            "They identify one number for each position, but no vectors of dimension 2: these take 2 documents or more "
            "across every link, each seen under more than 2 values, and across position 2 with position 3 there are 3, "
            "seen under too few values on one side.",
        ),
        (
            1,
            True,
            1,
            False,
            "They identify one number for each position, but no vectors of dimension 2: too few documents were seen "
            "under more than 2 values.",
        ),
    ],
)
def test_what_limits_the_dimension_is_said_unless_less_is_wanted(
    dimension: int,
    complete: bool,  # noqa: FBT001
    wanted: int,
    cuts: bool,  # noqa: FBT001
    said: str,
) -> None:
    seen = replace(sets(4, ("123", 3, 500), ("34", 2, 600)), complete=complete)
    found = SupportedDimension.of(FOUR, seen)
    supported = replace(found, dimension=dimension, cuts=found.cuts if cuts else ())
    answer = Linkage(FOUR, None, supported, features=True).section(wanted).answer
    assert answer == f"{LINKED_FOUR} {said}"


def test_documents_that_tell_too_little_on_one_side_are_as_many_as_are_needed() -> None:
    """Two documents were seen at 1, 2 and 3: no fewer than two dimensions take, but not at 4."""
    seen = sets(4, ("123", 2, 500), ("34", 2, 600))
    assert "there are 2, seen under too few values on one side." in linkage(FOUR, seen).section().answer
    fewer = sets(4, ("123", 1, 500), ("34", 2, 600))
    assert linkage(FOUR, fewer).section().answer.endswith("across position 2 with position 3 there is 1.")


def test_exploration_is_named_where_it_alone_makes_a_link() -> None:
    explored = graph((1, 2, 10, 200), (2, 3, 0, 120), names=places(3))
    start = (
        "Clicked documents that were seen under several values, or that exploration placed by chance, link all 3 "
        "positions; the weakest link that is needed, position 2 with position 3, rests on placements by exploration "
        "with 120 clicks."
    )
    assert linkage(explored, CHAIN).section().answer.startswith(start)


def test_combinations_of_factors_are_called_so() -> None:
    names = ["position 1, device desk", "position 1, device phone"]
    whole = graph((1, 2, 4, 90), names=names)
    position = graph(names=["position 1"])
    found = Linkage(position, whole, SupportedDimension.of(whole, sets(2, ("12", 4, 90))), features=True).section()
    assert found.verdict is CAREFUL
    assert found.answer == (
        "Clicked documents that were seen under several values link all 2 combinations of bias factors; the weakest "
        "link that is needed, position 1, device desk with position 1, device phone, rests on 4 documents with 90 "
        "clicks. They identify one number for each combination, the most that 2 combinations of bias factors can."
    )
    assert found.advice == (
        "Log more swaps between position 1, device desk and position 1, device phone, or merge them."
    )
    assert found.numbers["positions_connected"]


def test_one_value_alone_tells_nothing() -> None:
    found = linkage(graph(names=["position 1"]), sets(1)).section()
    assert (found.verdict, found.answer, found.advice) == (
        BAD,
        "Only one value was seen, so bias cannot be told from relevance.",
        "Log documents at several positions.",
    )
    assert (found.numbers["dimension"], found.numbers["affine"], found.numbers["links"]) == (0, False, [])


def test_two_positions_with_a_link_are_told_apart() -> None:
    found = linkage(graph((1, 2, 5, 100), names=places(2)), sets(2, ("12", 5, 100))).section()
    assert (found.verdict, found.numbers["dimension"], found.numbers["affine"]) == (GOOD, 1, True)
    assert found.answer.endswith("They identify one number for each position, the most that 2 positions can.")


def test_documents_that_count_as_one_make_links_that_may_be_wrong() -> None:
    found = linkage(THREE, CHAIN, alike=(8_000, 50)).section()
    assert found.verdict is CAREFUL
    assert found.answer.endswith(
        "But that is so only because documents with the same features count as one, 8,000 documents as 50: if they are "
        "not equally relevant, bias is told wrong."
    )
    assert found.advice == "Add features that tell documents apart, or show some at other positions."


def _two_dimensions(weakest: int, telling: int, *, features: bool = True) -> Linkage:
    """Three documents at all four positions tell two dimensions everywhere, two others down to the third only."""
    whole = graph((2, 3, 3, weakest), (1, 2, 9, 700), (3, 4, 8, 600), names=places(4))
    seen = sets(4, ("1234", 3, telling), ("123", 2, 500), ("12", 5, 900), ("34", 5, 900))
    return linkage(whole, seen, features=features)


@pytest.mark.parametrize(
    ("weakest", "telling", "features", "verdict", "advice"),
    [
        (300, 100, True, GOOD, ""),
        (300, 99, True, CAREFUL, "window"),
        (99, 300, True, CAREFUL, "swaps"),
        (100, 300, True, GOOD, ""),
        (60, 60, True, CAREFUL, "swaps"),
        (60, 59, True, CAREFUL, "window"),
        (60, 61, True, CAREFUL, "swaps"),
        (60, 10, False, CAREFUL, "window"),
        (60, 9, False, BAD, "window"),
        (60, 9, True, CAREFUL, "window"),
        (9, 60, False, BAD, "swaps"),
    ],
)
def test_the_fewer_clicks_of_a_link_and_of_documents_that_tell_the_dimension_decide(
    weakest: int,
    telling: int,
    features: bool,  # noqa: FBT001
    verdict: Verdict,
    advice: str,
) -> None:
    found = _two_dimensions(weakest, telling, features=features).section(2)
    assert (found.verdict, found.advice) == (
        verdict,
        {
            "": "",
            "swaps": "Log more swaps between position 2 and position 3, or merge them.",
            "window": "Show more documents, at random, under each of position 2, position 3, position 4.",
        }[advice],
    )
    assert found.answer == (
        "Clicked documents that were seen under several values link all 4 positions; the weakest link that is needed, "
        f"position 2 with position 3, rests on 3 documents with {weakest} clicks. They identify bias vectors up to "
        f"dimension 3, the most that 4 positions can. The clicks ask for dimension 2, {RANK}; for that the thinnest "
        f"link, position 3 with position 4, rests on 3 documents with {telling} clicks."
    )
    assert "ask for" not in _two_dimensions(weakest, telling, features=features).section(1).answer
    assert found.numbers["windows"] == []


ADJACENT = graph((1, 2, 5, 200), (2, 3, 5, 300), (3, 4, 5, 400), names=places(4))
PAIRS = sets(4, ("12", 5, 200), ("23", 5, 300), ("34", 5, 400))


@pytest.mark.parametrize(
    ("seen", "wanted", "advice"),
    [
        (
            PAIRS,
            2,
            "Show some documents, 2 at least, at random, for a while, under each of position 1, position 2, "
            "position 3; under all 4 positions. Or train Affine, whose trust bias these links identify.",
        ),
        (
            sets(4, ("12", 5, 200), ("23", 1, 300), ("34", 5, 400)),
            2,
            "Show some documents, 2 at least, at random, for a while, under each of position 1, position 2, "
            "position 3; under all 4 positions.",
        ),
        (PAIRS, 3, "Show some documents, 3 at least, at random, for a while, under all 4 positions."),
        (PAIRS, 4, "Log documents under more than 4 values."),
    ],
)
@pytest.mark.parametrize("features", [True, False])
def test_more_dimensions_than_the_links_bear_ask_for_documents_at_more_positions(
    seen: ValueSets,
    wanted: int,
    advice: str,
    features: bool,  # noqa: FBT001
) -> None:
    found = linkage(ADJACENT, seen, features=features).section(wanted)
    assert (found.verdict, found.advice) == (CAREFUL if features else BAD, advice)
    assert found.answer == (
        "Clicked documents that were seen under several values link all 4 positions; the weakest link that is needed, "
        "position 1 with position 2, rests on 5 documents with 200 clicks. They identify one number for each position, "
        "but no vectors of dimension 2: these take 2 documents or more across every link, each seen under more than 2 "
        "values, and across position 1 with position 2 there are none. But the clicks ask for dimension "
        f"{wanted}, {RANK}: different biases, with different orders of the documents, give the same click rates."
        + (f" O{BELIEF} them apart." if features else "")
    )
    windows = {2: [places(3), places(4)], 3: [places(4)], 4: []}
    assert found.numbers["windows"] == windows[wanted]


def test_windows_of_combinations_are_set_apart_by_slashes() -> None:
    names = [f"position {place}, device desk" for place in range(1, 5)]
    whole = graph((1, 2, 5, 200), (2, 3, 5, 300), (3, 4, 5, 400), names=names)
    found = Linkage(ADJACENT, whole, SupportedDimension.of(whole, PAIRS), features=True).section(2)
    assert f"under each of {' / '.join(names[:3])}; under all 4 combinations of bias factors." in found.advice


PARTS = graph((1, 2, 3, 50), (3, 4, 3, 50), names=places(5), impressions=[1_000, 1_000, 900, 900, 200])
"""Positions 1 and 2, 3 and 4, and 5: 50, 45 and 5 % of the traffic."""


@pytest.mark.parametrize("features", [True, False])
def test_parts_that_nothing_links_are_told_with_their_traffic(features: bool) -> None:  # noqa: FBT001
    found = linkage(PARTS, sets(5, ("12", 3, 50), ("34", 3, 50)), features=features).section(2)
    assert found.verdict is (CAREFUL if features else BAD)
    end = f"So o{BELIEF} bias from relevance." if features else "So the bias of one part cannot be compared with that "
    assert found.answer == (
        "The 5 positions fall into 3 parts that no clicked document links; the largest has 50% of the traffic. "
        + (end if features else f"{end}of another.")
    )
    assert found.advice == (
        "Show some documents, at random, for a while, at both position 2 and position 3; position 4 and position 5; or "
        "merge position 2 with position 3; position 4 with position 5."
    )
    parts, links = found.tables
    assert (parts.title, parts.folded, links.folded) == ("parts that nothing links", False, True)
    assert parts.rows == [
        {"part": "1", "traffic": "50.0%", "values": "position 1; position 2"},
        {"part": "2", "traffic": "45.0%", "values": "position 3; position 4"},
        {"part": "3", "traffic": "5.0%", "values": "position 5"},
    ]
    assert links.rows[0] == {
        "link": "position 1 - position 2",
        "documents": "3",
        "effective impressions": "1,000",
        "clicks": "50",
        "bridge": "yes",
        "supports dimension": "",
    }
    assert (found.numbers["dimension"], found.numbers["windows"], found.numbers["connected"]) == (0, [], False)


@pytest.mark.parametrize(("shown", "tail"), [(10, True), (11, False)])
def test_a_few_pages_that_went_on_are_to_be_left_out(shown: int, tail: bool) -> None:  # noqa: FBT001
    """Positions 3 and 4 have one in a hundred of what was shown, or more."""
    whole = graph((1, 2, 9, 500), names=places(4), impressions=[1_000, 980, 10, shown])
    found = linkage(whole, sets(4, ("12", 9, 500))).section()
    leave = (
        "Leave out what was shown below position 2: ultr prepare "
        "\"sql:SELECT * FROM 'FILE' WHERE position <= 2\" --overwrite, with the options of before."
    )
    assert found.advice.startswith(leave) is tail
    assert ("all but the largest lie below position 2, which 1.00% of the traffic does." in found.answer) is tail
    assert ("the largest has 99% of the traffic." in found.answer) is not tail


@pytest.mark.parametrize(("clicks", "last"), [(9, 2), (10, 3)])
def test_places_that_hang_on_next_to_no_clicks_are_left_out_with_them(clicks: int, last: int) -> None:
    whole = graph((1, 2, 9, 500), (2, 3, 1, clicks), names=places(4), impressions=[1_000, 990, 6, 4])
    found = linkage(whole, sets(4, ("12", 9, 500), ("23", 1, clicks))).section()
    assert found.advice.startswith(f"Leave out what was shown below position {last}: ultr prepare ")


def test_places_between_others_are_not_to_be_left_out_however_few_saw_them() -> None:
    whole = graph((1, 3, 9, 500), names=places(3), impressions=[1_000, 1, 1_000])
    assert "Leave out" not in linkage(whole, sets(3, ("13", 9, 500))).section().advice


def test_without_any_link_neighbours_are_to_change_places() -> None:
    found = linkage(graph(names=places(3)), sets(3), features=False).section()
    assert (found.verdict, found.answer, found.advice) == (
        BAD,
        "No clicked document was seen under two of the 3 positions. So the bias of one part cannot be compared with "
        "that of another.",
        "Show neighbouring documents the other way round, at random, on a small share of the pages.",
    )
    assert [table.title for table in found.tables] == ["parts that nothing links"]


@pytest.mark.parametrize("linked", [True, False])
def test_factors_that_split_the_log_can_be_left_out_where_positions_alone_are_linked(linked: bool) -> None:  # noqa: FBT001
    names = ["position 1, device desk", "position 2, device desk", "position 1, device phone"]
    whole = graph((1, 2, 3, 50), names=names)
    position = graph(*([(1, 2, 3, 50)] if linked else []), names=places(2))
    seen = sets(3, ("12", 3, 50))
    found = Linkage(position, whole, SupportedDimension.of(whole, seen), features=True).section()
    assert ("By position alone all are linked." in found.answer) is linked
    assert (
        found.advice.startswith("Leave the other factors out of the model, or do one of the following. Show") is linked
    )
    assert found.answer.startswith("The 3 combinations of bias factors fall into 2 parts")


def test_positions_are_not_told_from_themselves() -> None:
    found = linkage(PARTS, sets(5)).section()
    assert "By position alone" not in found.answer
    assert "Leave the other factors out" not in found.advice


def test_the_weakest_twelve_links_and_the_largest_twelve_parts_are_shown() -> None:
    chain = graph(*((place, place + 1, 5, 1_234) for place in range(1, 14)), names=places(14))
    (links,) = linkage(chain, sets(14)).section().tables
    assert [row["link"] for row in links.rows] == [f"position {place} - position {place + 1}" for place in range(1, 13)]
    assert links.title == "the links that hold it together, fewest clicks first"
    assert links.folded
    (parts,) = linkage(graph(names=places(14)), sets(14)).section().tables
    assert [row["part"] for row in parts.rows] == [str(part) for part in range(1, 13)]
    assert not parts.folded


def test_the_link_that_is_named_is_the_first_of_the_table() -> None:
    """Position 2 is linked with 3 by more impressions than with 1, but by fewer clicks; 3 with 4 by most of both."""
    chain = graph((1, 2, 10, 200), (2, 3, 5, 120), (3, 4, 5, 300), names=places(4))
    found = linkage(chain, sets(4, ("12", 10, 200), ("23", 5, 120), ("34", 5, 300))).section()
    (links,) = found.tables
    assert [row["clicks"] for row in links.rows] == ["120", "200", "300"]
    assert [row["effective impressions"] for row in links.rows] == ["2,000", "1,000", "3,000"]
    assert [link["clicks"] for link in found.numbers["links"]] == [120, 200, 300]
    assert "the weakest link that is needed, position 2 with position 3, rests on 5 documents" in found.answer


def test_three_names_are_listed_and_the_others_counted() -> None:
    apart = linkage(graph(names=places(5)), sets(5))
    one_more = graph((1, 2, 3, 9), names=places(6))
    assert len(apart.section().numbers["swaps"]) == 4
    advice = linkage(one_more, sets(6)).section().advice
    assert advice == (
        "Show some documents, at random, for a while, at both position 2 and position 3; position 3 and position 4; "
        "position 4 and position 5; and 1 more; or merge position 2 with position 3; position 3 with position 4; "
        "position 4 with position 5; and 1 more."
    )
    fewer = linkage(graph((1, 2, 3, 9), names=places(5)), sets(5)).section().advice
    assert "more; or merge" not in fewer
    assert "position 4 and position 5; or merge" in fewer


def test_the_table_says_what_each_link_supports_and_five_is_the_most_that_is_looked_for() -> None:
    everywhere = "1234567"
    whole = graph(*((place, place + 1, 9, 2_000) for place in range(1, 7)), names=places(7))
    (links,) = linkage(whole, sets(7, (everywhere, 9, 900))).section().tables
    assert {row["supports dimension"] for row in links.rows} == {"5+"}
    assert {row["bridge"] for row in links.rows} == {"yes"}
    fewer = linkage(whole, sets(7, (everywhere, 4, 900))).section()
    assert {row["supports dimension"] for row in fewer.tables[0].rows} == {"4"}
    assert [link["dimension"] for link in fewer.numbers["links"]] == [4] * 6
    ring = graph((1, 2, 9, 2_000), (2, 3, 9, 2_000), (1, 3, 9, 2_000), names=places(3))
    assert {row["bridge"] for row in linkage(ring, sets(3, ("123", 9, 9))).section().tables[0].rows} == {""}


def test_the_drawing_counts_links_and_parts() -> None:
    (drawing,) = linkage(PARTS, sets(5)).section().drawings().values()
    assert drawing.description.endswith("2 links, 3 part(s)")
    (drawing,) = linkage(THREE, CHAIN).section().drawings().values()
    assert drawing.description.endswith("2 links, 1 part(s)")
