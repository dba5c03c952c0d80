from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr import DLA, MLP, Auto, ClickBaseline, ClickLog, DoublyRobust, LabelBaseline, Trees, Vectorization, tune
from ultr.errors import DataError, OptionError, TrainingError
from ultr.evaluation import unseen_part
from ultr.methods import LightGBMRanker
from ultr.relevance.search_space import Between, OneOf, SearchSpace
from ultr.tuning import tuning as tuning_module
from ultr.tuning.search_folder import TRIALS, SearchFolder
from ultr.tuning.tuning import TUNING

TINY = DLA(relevance=MLP(hidden=(4,), steps=8))
SPACE: SearchSpace = {"hidden": OneOf(((4,), (8,))), "learning_rate": Between(0.001, 0.1)}


@pytest.fixture
def log(small_log: ClickLog) -> ClickLog:
    return small_log


def test_the_settings_that_were_given_come_first_and_the_best_ranker_is_kept(log: ClickLog) -> None:
    found = tune(TINY, log, trials=4, space=SPACE)
    assert len(found.tried) == 4
    assert found.tried[0].settings == {"hidden": (4,), "learning_rate": 0.01}
    assert found.tried[0].lead == 0
    assert found.best.log_likelihood == max(each.log_likelihood or -9 for each in found.tried)
    train, held_out = log.split()
    again = replace(TINY, relevance=replace(TINY.relevance, **found.settings)).fit(train, validation=held_out)
    shares = found.ranker.click_shares(held_out)
    np.testing.assert_array_equal(shares, again.click_shares(held_out))
    expected = np.average(np.log(shares), weights=held_out.clicks)
    assert found.best.log_likelihood == pytest.approx(expected)
    untuned = TINY.fit(train, validation=held_out).click_shares(held_out)
    given = np.average(np.log(untuned), weights=held_out.clicks)
    assert found.best.lead == pytest.approx(expected - given)


def test_the_clicks_that_chose_are_on_record(log: ClickLog) -> None:
    ranker = tune(TINY, log, trials=2, space=SPACE).ranker
    unseen = unseen_part({"tuned": ranker}, log)
    assert unseen.log.fingerprint() == log.split()[1].fingerprint()
    assert "clicks of this part chose the weights of tuned, so numbers may be a little too good" in unseen.notes
    assert len(ranker.choices[TUNING]) == 2


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(log: ClickLog, tmp_path: Path) -> None:
    whole = tune(TINY, log, trials=4, space=SPACE)
    tune(TINY, log, trials=2, space=SPACE, folder=tmp_path / "search")
    told: list[int] = []
    resumed = tune(
        TINY, log, trials=4, space=SPACE, folder=tmp_path / "search", tell=lambda tried: told.append(len(tried))
    )
    assert told == [3, 4]
    assert [each.settings for each in resumed.tried] == [each.settings for each in whole.tried]
    assert [(each.log_likelihood, each.lead, each.error) for each in resumed.tried] == [
        (each.log_likelihood, each.lead, each.error) for each in whole.tried
    ]
    held_out = log.split()[1]
    np.testing.assert_array_equal(resumed.ranker.click_shares(held_out), whole.ranker.click_shares(held_out))


def test_the_folder_of_another_search_is_refused_and_one_is_removed_whole(log: ClickLog, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    tune(TINY, log, trials=1, space=SPACE, folder=folder)
    with pytest.raises(DataError, match="holds another search"):
        tune(TINY, log, trials=1, space=SPACE, folder=folder, seed=1)
    text = (folder / TRIALS).read_text()
    (folder / TRIALS).write_text(text.replace("0.0", "0.5", 1))
    with pytest.raises(DataError, match="is damaged"):
        tune(TINY, log, trials=2, space=SPACE, folder=folder)
    (folder / "note").write_text("mine")
    SearchFolder(folder, "").remove()
    assert [path.name for path in folder.iterdir()] == ["note"]


def test_no_more_time_is_taken_than_there_is_but_for_the_first_settings(
    log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tune(TINY, log, trials=5, minutes=1e-9, space=SPACE)
    assert len(found.tried) == 1
    # A clock that jumps in the middle of the second training.
    now = [0.0]

    def monotonic() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(tuning_module, "monotonic", monotonic)
    found = tune(TINY, log, trials=5, minutes=10 / 60, space=SPACE)
    assert len(found.tried) == 1
    assert now[0] < 30


def test_settings_whose_training_fails_are_left_out(log: ClickLog, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, count = DLA.fit, [0]

    def failing(self: DLA, *data: Any, **options: Any) -> DLA:
        count[0] += 1
        if count[0] == 2:
            raise TrainingError("the loss is not a number")
        return fit(self, *data, **options)

    monkeypatch.setattr(DLA, "fit", failing)
    found = tune(TINY, log, trials=3, space=SPACE)
    assert [each.log_likelihood is None for each in found.tried] == [False, True, False]
    assert found.best.log_likelihood is not None


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ([DLA(), Vectorization()], "held-out clicks compare settings of one method, not methods"),
        (LabelBaseline(), "learns from labels, and a search goes by held-out clicks"),
        (LightGBMRanker(), "does not predict clicks by the model that it ranks by"),
        (Vectorization(relevance=Trees()), "Vectorization with trees does not predict clicks by the model"),
        (Auto(relevance=Trees()), "Auto with trees does not predict clicks by the model"),
        (DLA(value={"click": 1.0}), "held-out clicks say nothing of a value; tune without value"),
        (DoublyRobust(), "DoublyRobust with mlp does not predict clicks by the model"),
    ],
)
def test_what_held_out_clicks_cannot_choose_is_refused(log: ClickLog, method: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        tune(method, log)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be an integer of at least 1"),
        ({"minutes": 0}, "minutes must be a number above 0"),
        ({"space": {}}, "there is nothing to search"),
        ({"space": {"hiden": OneOf((1, 2))}}, "did you mean 'hidden'"),
        ({"space": {"steps": Between(5, 5)}}, "must go from a lower to a higher number"),
        ({"space": {"hidden": OneOf(((8,),))}}, "at least two values"),
        (
            {"space": {"hidden": Between(8, 16)}},
            r"hidden, to be searched between two numbers, must be a number .* got \(",
        ),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(log: ClickLog, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        tune(TINY, log, **options)
    with pytest.raises(OptionError, match=r"make one with ultr.read_log"):
        tune(TINY, {"clicks": [1]})  # type: ignore[arg-type]


def test_the_spaces_of_relevance_models_hold_their_defaults_and_are_options_of_theirs() -> None:
    collapsed = MLP(recipe="collapsed")
    for relevance in (MLP(), collapsed, replace(collapsed, weight_decay_epochs=3.0), Trees()):
        space = relevance.search_space()
        for name, values in space.items():
            values.check(name)
            assert values.including(relevance.value_of(name)) == values
            assert name in vars(relevance)
        replace(relevance, **{name: relevance.value_of(name) for name in space}).check()
    assert "weight_decay_epochs" in replace(collapsed, weight_decay_epochs=3.0).search_space()
    for without in (collapsed, MLP(recipe="paper")):
        assert "weight_decay_epochs" not in without.search_space()
    with pytest.raises(OptionError, match="trains by AdaGrad, without weight_decay_epochs"):
        ClickBaseline(relevance=MLP(recipe="paper", weight_decay_epochs=3.0)).check()
