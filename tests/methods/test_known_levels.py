from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr.data import gathering, ragged
from ultr.data.bias_factor import BiasFactor, numeric_factor
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, ModelFileError, UltrWarning
from ultr.evaluation import UnseenPart, click_fit, compare
from ultr.files import read_json, write_json
from ultr.methods import DLA, ClickBaseline, TwoTower, load
from ultr.methods.factors import Factor, factors_of
from ultr.methods.known_levels import known_levels
from ultr.relevance import MLP

TINY: dict[str, Any] = {"relevance": MLP(hidden=(4,), steps=30)}


def _log(positions: int = 3, lists: int = 6, *, seed: int = 0, **factors: Any) -> ClickLog:
    """Lists of so many documents; factors have a value for each shown document."""
    random = np.random.default_rng(seed)
    shown = positions * lists
    return ClickLog.of(
        features=random.normal(size=(shown, 2)),
        documents=np.arange(shown),
        offsets=np.arange(0, shown + 1, positions),
        clicks=np.tile([3] + [1] * (positions - 1), lists),
        impressions=np.full(lists, 5),
        **factors,
    )


def _with(log: ClickLog, factor: BiasFactor) -> ClickLog:
    return replace(log, factors=(*log.factors, factor))


def _matched(log: ClickLog, known: BiasFactor, *, usual: int = 0) -> list[int]:
    """The levels of the second factor of a log, for a ranker that knows this one."""
    factors = (Factor("position", ("1", "2", "3"), 0), Factor(known.name, known.levels, 1, False, known.edges, usual))
    levels: list[int] = known_levels(log, factors, learned=("position", known.name))[1].tolist()
    return levels


def test_levels_of_the_training_log_are_taken_as_they_are() -> None:
    log = _log(device=["phone", "desk", "tv"] * 6)
    position, device = known_levels(log, factors_of(log), learned=("position", "device"))
    assert position is log.factors[0].values
    assert device is log.factors[1].values


def test_categorical_levels_are_matched_by_name_in_whatever_order() -> None:
    device = BiasFactor("device", np.array([0, 1, 0] * 6, dtype=np.int32), ("phone", "desk"))
    known = BiasFactor("device", np.zeros(0, dtype=np.int32), ("desk", "other", "phone"))
    assert _matched(_with(_log(), device), known) == [2, 0, 2] * 6


@pytest.mark.parametrize(("known", "taken_as"), [(("desk", "other", "phone"), "other"), (("desk", "phone"), "phone")])
def test_a_level_that_was_not_there_is_other_or_else_the_most_frequent_one(
    known: tuple[str, ...], taken_as: str
) -> None:
    device = BiasFactor("device", np.array([0, 1, 2] * 6, dtype=np.int32), ("desk", "tv", "watch"))
    factor, usual = BiasFactor("device", np.zeros(0, dtype=np.int32), known), known.index("phone")
    sentence = rf"device tv, watch \(60 of 90 shown documents\) taken as {taken_as}$"
    with pytest.warns(UltrWarning, match=sentence):
        levels = _matched(_with(_log(), device), factor, usual=usual)
    assert [known[level] for level in levels] == ["desk", taken_as, taken_as] * 6


def test_the_most_frequent_level_is_the_one_with_most_shown_documents() -> None:
    device = BiasFactor("device", np.array([1, 1, 0] * 6, dtype=np.int32), ("desk", "phone"))
    assert [factor.usual for factor in factors_of(_with(_log(), device))] == [0, 1]


def test_deeper_positions_count_as_the_deepest_one_and_fewer_are_fine() -> None:
    known = (Factor("position", ("1", "2", "3"), 0),)
    with pytest.warns(UltrWarning, match=r"position 4, 5, 6 and 1 more \(120 of 210 shown documents\) taken as 3$"):
        (levels,) = known_levels(_log(7), known, learned=("position",))
    assert levels.tolist() == [0, 1, 2, 2, 2, 2, 2] * 6
    (levels,) = known_levels(_log(2), known, learned=("position",))
    assert levels.tolist() == [0, 1] * 6


def test_levels_that_no_document_has_are_not_spoken_of() -> None:
    device = BiasFactor("device", np.zeros(18, dtype=np.int32), ("desk", "tv"))
    assert _matched(_with(_log(), device), BiasFactor("device", device.values, ("desk",))) == [0] * 18


def test_numbers_are_matched_by_their_place_between_the_edges() -> None:
    pixels = np.array([50, 150, 450] * 6)
    known = numeric_factor("pixels", pixels, edges=[100, 400])
    finer = _with(_log(), numeric_factor("pixels", pixels, edges=[100, 200, 400]))
    assert _matched(finer, known) == [0, 1, 2] * 6
    few = _log(pixels=pixels)
    assert not few.factors[1].edges
    assert _matched(few, known) == [0, 1, 2] * 6
    # The bin from 40 to 200 has 100 inside, and its middle is 120; the last one begins at 200 and has 400 inside.
    other = _with(_log(), numeric_factor("pixels", pixels, edges=[40, 200]))
    with pytest.warns(UltrWarning, match=r"pixels 40-200, >=200 \(90 of 90 shown documents\) taken as 100-400"):
        assert _matched(other, known) == [1, 1, 1] * 6


def test_numbers_and_texts_do_not_stand_for_each_other() -> None:
    numbers, texts = numeric_factor("pixels", [5, 20, 7] * 6, edges=[10]), _log(pixels=["top", "low", "top"] * 6)
    with pytest.raises(DataError, match="'pixels' was numeric in training, but is categorical in the log"):
        _matched(texts, numbers)
    with pytest.raises(DataError, match="'pixels' was categorical in training, but is numeric in the log"):
        _matched(_with(_log(), numbers), texts.factors[1])


def test_a_missing_factor_is_refused_by_name_unless_the_ranker_did_not_learn_it() -> None:
    log = _log(device=["phone", "desk", "tv"] * 6)
    with pytest.raises(DataError, match="the log has no bias factor 'device', which the ranker was trained with"):
        known_levels(_log(), factors_of(log), learned=("position", "device"))
    assert len(known_levels(_log(), factors_of(log), learned=("position",))) == 2


def test_an_additional_factor_is_left_out_and_named() -> None:
    log = _log(device=["phone", "desk", "tv"] * 6)
    with pytest.warns(UltrWarning, match="trained on: left out: 'device'$"):
        assert len(known_levels(log, factors_of(_log()), learned=("position",))) == 1


def test_what_a_ranker_did_not_learn_is_not_spoken_of() -> None:
    ranker = ClickBaseline(**TINY).fit(_log(device=["phone", "desk", "phone"] * 6))
    assert len(ranker.click_shares(_log(5, device=["tv"] * 30))) == 30


def test_large_logs_are_matched_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "SPAN", 5)
    monkeypatch.setattr(gathering, "LARGE", 8)
    device = BiasFactor("device", np.array([0, 1, 0] * 6, dtype=np.int32), ("phone", "desk"))
    known = BiasFactor("device", np.zeros(0, dtype=np.int32), ("desk", "phone"))
    assert _matched(_with(_log(), device), known) == [1, 0, 1] * 6


@pytest.mark.filterwarnings("ignore:the log has other bias factors")
def test_predictions_are_those_of_the_level_that_stands_in() -> None:
    ranker = TwoTower(**TINY).fit(_log(device=["phone", "phone", "desk"] * 6)).ranker_
    day = _log(5, seed=1, device=["tv"] * 30)
    chances = ranker.click_probabilities(day)
    # One document a list, so that positions can be those that stand in.
    alone = ClickLog.of(
        features=day.features[day.documents],
        documents=np.arange(30),
        offsets=np.arange(31),
        clicks=np.ones(30),
        positions=np.minimum(day.positions, 3),
        device=["phone"] * 30,
    )
    np.testing.assert_allclose(chances, ranker.click_probabilities(alone), rtol=1e-6)


def test_whatever_asks_for_predictions_says_it_once_per_log() -> None:
    ranker, rival = (DLA(**TINY, seed=seed).fit(_log(3, 40)).ranker_ for seed in (0, 1))
    deeper = _log(5, 40, seed=1)
    for look in (
        lambda: click_fit(ranker, deeper, unseen=UnseenPart(deeper, "all")),
        lambda: compare(ranker, rival, deeper),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            look()
        assert sum("position 4, 5" in str(each.message) for each in caught) == 1


def test_a_validation_log_may_have_other_levels_but_no_fewer_factors() -> None:
    log = _log(style=["plain", "bright", "plain"] * 6)
    with pytest.warns(UltrWarning, match=r"position 4.*taken as 3; style dark .* taken as plain"):
        TwoTower(**TINY).fit(log, validation=_log(4, style=["dark"] * 24))
    with pytest.raises(DataError, match="no bias factor 'style'"):
        TwoTower(**TINY).fit(log, validation=_log())


def test_edges_and_usual_levels_stay_with_a_saved_ranker_and_old_files_have_none(tmp_path: Path) -> None:
    pixels = numeric_factor("pixels", [5, 20, 7] * 6, edges=[10])
    ranker = TwoTower(**TINY).fit(_with(_log(style=["b", "a", "b"] * 6), pixels)).ranker_
    ranker.save(tmp_path / "ranker")
    loaded = load(tmp_path / "ranker").factors
    assert [(each.edges, each.usual) for each in loaded] == [((), 0), ((), 1), ((10.0,), 0)]
    manifest = tmp_path / "ranker" / "manifest.json"
    old = read_json(manifest)
    for factor in old["factors"]:
        del factor["edges"], factor["usual"]
    write_json(manifest, old)
    assert [(each.edges, each.usual) for each in load(tmp_path / "ranker").factors] == [((), 0)] * 3


@pytest.mark.parametrize(("field", "value"), [("usual", 3), ("usual", -1), ("edges", [1.0]), ("edges", [2.0, 1.0])])
def test_a_factor_of_a_damaged_manifest_is_refused(field: str, value: object, tmp_path: Path) -> None:
    TwoTower(**TINY).fit(_log()).save(tmp_path / "ranker")
    path = tmp_path / "ranker" / "manifest.json"
    manifest = read_json(path)
    manifest["factors"][0][field] = value
    write_json(path, manifest, sealed=True)
    with pytest.raises(ModelFileError, match="is damaged at 'factors"):
        load(tmp_path / "ranker")
