"""What every method keeps to, with every relevance model.

@pytest.mark.parametrize("method", [Additive])
class TestAdditive(MethodContract):
    changes = {"penalty": 0.5}
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest
import torch
from torch.nn import functional

from ultr.arrays import Integers
from ultr.clicks.registry import click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.data.signal import Signal
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.methods.estimator import Estimator
from ultr.methods.factors import factors_of
from ultr.methods.registry import load
from ultr.relevance import MLP, Inputs, Preprocessing, Relevance
from ultr.simulation.log import simulate
from ultr.train.checkpoint import Checkpoint
from ultr.train.lists import Batch, TrainingLists
from ultr.train.ranking_model import RankingModel
from ultr.train.stage import Stage

Data = ClickLog | JudgedLists
DataT = TypeVar("DataT", bound=ClickLog | JudgedLists)
REGIONS = ("north", "south", "east", "west", "other")
"""Values of a category."""
_FITTED: dict[tuple[type, type[Estimator]], Estimator] = {}


@lru_cache(maxsize=1)
def small_lists() -> Splits:
    """Generated judged lists: 60 queries to train on, 20 each to validate and test, 64 features."""
    return letor_like(train_queries=60, validation_queries=20, test_queries=20)


@lru_cache(maxsize=1)
def small_log() -> ClickLog:
    """Trust-bias clicks on the training lists, with four rankings per query and clicks that came together counted.

    Every tenth click on the worst grade is a purchase, and every second on the best.
    """
    lists, clicks, signals = small_lists().train, click_model("trust"), {"purchase": (0.1, 0.2, 0.3, 0.4, 0.5)}
    return simulate(
        lists, clicks, impressions=30_000, svm_share=0.1, rankings=4, noise=0.5, pairs=True, signals=signals
    )


def mixed(data: DataT) -> DataT:
    """Data of both kinds of features: the first holds codes of a category, the second is missing at times."""
    features = np.array(data.features)
    ranks = np.argsort(np.argsort(features[:, 0], kind="stable"))
    features[:, 0] = ranks * len(REGIONS) // len(ranks) * 2 % len(REGIONS)
    features[ranks % 3 == 0, 1] = np.nan
    if isinstance(data, ClickLog):
        return replace(data, features=features, categories={data.feature_names[0]: REGIONS})
    return replace(data, features=features)


def known(options: dict[str, Any], method: type[Estimator]) -> dict[str, Any]:
    """The options that the method has."""
    return {name: value for name, value in options.items() if name not in method.without}


class InterruptedRunError(Exception):
    """A run that was killed right after a checkpoint."""


class MethodContract:
    """Tests of the estimator class `method`, which is given by `pytest.mark.parametrize`."""

    relevance: ClassVar[Relevance] = MLP(hidden=(16,), steps=20, batch_size=32)
    """The relevance model that it is tested with."""
    changes: ClassVar[dict[str, Any]] = {}
    """Another value for each option of the method's own; that of a relevance model is `relevance__NAME`."""
    common_changes: ClassVar[dict[str, Any]] = {
        "relevance": MLP(hidden=(8,), steps=20, batch_size=32),
        "relevance__hidden": (8,),
        "relevance__recipe": "paper",
        "relevance__steps": 15,
        "relevance__learning_rate": 0.02,
        "relevance__batch_size": 16,
        "relevance__weight_decay_epochs": 1e6,
        "relevance__precision": "bfloat16",
        "seed": 1,
        "seeds": 2,
        "value": {"purchase": 1.0},
        "evaluate_every": 7,
        "patience": 1,
    }

    fewest_scores: ClassVar[int] = 26
    """Fewest different scores of 50 candidates that have one feature."""
    longer: ClassVar[dict[str, Any]] = {"relevance__steps": 80, "evaluate_every": 20}
    """Options of a training that fits the data well."""
    overfitting: ClassVar[dict[str, Any]] = {
        "relevance__steps": 60,
        "relevance__learning_rate": 0.1,
        "evaluate_every": 5,
    }
    """Options of a training that goes on after its best validation."""

    def make(self, method: type[Estimator], **options: Any) -> Estimator:
        """An estimator that is trained in a moment; what it has no use for is left at its default."""
        made, usual = method(relevance=self.relevance, evaluate_every=10), method().get_params()
        return made.set_params(**{name: usual[name] for name in method.without} | options)

    def data(self, method: type[Estimator]) -> Data:
        """Small data that the method learns from."""
        return small_lists().train if method.learns_from is JudgedLists else small_log()

    def fitted(self, method: type[Estimator]) -> Estimator:
        """An estimator that was fitted to the small data, once for all tests that only look at it."""
        key = type(self), method
        if key not in _FITTED:
            _FITTED[key] = self.make(method).fit(self.data(method))
        return _FITTED[key]

    def scores(self, estimator: Estimator) -> Any:
        """The scores of all test candidates."""
        test = small_lists().test
        return estimator.score(test.features, test.offsets)

    def test_the_same_seed_gives_the_same_scores_bit_for_bit(self, method: type[Estimator]) -> None:
        """Everything that is drawn comes from the seed."""
        data, validation = self.data(method), small_lists().validation
        first, second = (self.make(method).fit(data, validation=validation) for _ in range(2))
        np.testing.assert_array_equal(self.scores(first), self.scores(second))
        assert first.history_ == second.history_

    def test_a_killed_run_ends_like_one_that_ran_through(
        self, method: type[Estimator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed after every checkpoint, again and again."""
        data, validation = self.data(method), small_lists().validation
        whole = self.make(method).fit(data, validation=validation)
        save = Checkpoint.save

        def save_and_die(self: Checkpoint, *state: Any) -> None:
            save(self, *state)
            raise InterruptedRunError

        resumed = None
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "save", save_and_die)
            for _ in range(1 + len(whole.history_)):
                try:
                    resumed = self.make(method).fit(data, validation=validation, checkpoint=tmp_path / "checkpoint")
                except InterruptedRunError:
                    continue
        assert resumed is not None, "the run did not get to its end"
        assert resumed.history_ == whole.history_
        before, after = (each.ranker_.model.state_dict() for each in (whole, resumed))
        for name, value in before.items():
            assert torch.equal(value, after[name]), name

    def test_shares_of_a_batch_add_up_to_the_whole(self, method: type[Estimator]) -> None:
        """Gradients and sums of two processes are those of one, noise included."""
        model, lists, stages = _beginning(self.make(method), self.data(method))
        drawn = np.arange(20)

        def batch(share: Integers, noise: int) -> Batch:
            return lists.batch(drawn, share=share, noise=noise, random=lambda _: np.random.default_rng(5))

        for stage in stages:
            if stage.begin is not None:
                stage.begin(model.by_name)
            found = []
            for shares in ([drawn], [drawn[::2], drawn[1::2]]):
                model.zero_grad()
                outcomes = []
                for share in shares:
                    part = batch(share, stage.noise)
                    losses, sums = model.losses(stage, part)
                    losses.sum().backward()  # type: ignore[no-untyped-call]
                    outcomes.append([losses.detach().sum(), *([] if sums is None else [sums])])
                gradients = [weights.grad.clone() for weights in model.parameters() if weights.grad is not None]
                found.append([*(sum(each) for each in zip(*outcomes, strict=True)), *gradients])
            torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-4)

    def test_lists_that_a_stage_leaves_out_have_neither_loss_nor_gradient(self, method: type[Estimator]) -> None:
        """What `clicked_only` says is true."""
        model, lists, stages = _beginning(self.make(method), self.data(method))
        if not any(stage.clicked_only for stage in stages):
            pytest.skip("it learns from all lists")
        for stage in stages:
            if stage.begin is not None:
                stage.begin(model.by_name)
            if stage.clicked_only:
                batch = lists.batch(np.arange(20), noise=stage.noise, random=lambda _: np.random.default_rng(5))
                model.zero_grad()
                losses, _ = model.losses(stage, replace(batch, clicks=torch.zeros_like(batch.clicks)))
                losses.sum().backward()  # type: ignore[no-untyped-call]
                assert not losses.any()
                assert not any(weights.grad.any() for weights in model.parameters() if weights.grad is not None)

    def test_separate_sessions_train_like_the_collapsed_log(self, method: type[Estimator]) -> None:
        """Rows of one impression each have the gradient of the row that they collapse to."""
        if method.learns_from is not ClickLog:
            pytest.skip("it does not learn from sessions")
        few, separate = _collapsed_and_separate()
        # Full batches, so that both see the whole log at every step; the order of summation differs in the last digits.
        options = self.few_steps_on(separate.lists)
        if _draws(self.make(method), few):
            pytest.skip("random numbers belong to lists or sessions, of which there are not as many")
        collapsed_scores = self.make(method, **options).fit(few).score(few.features)
        separate_scores = self.make(method, **options).fit(separate).score(few.features)
        # A list-wise loss does not see a constant in all scores, so rounding decides where it wanders.
        np.testing.assert_allclose(
            collapsed_scores - collapsed_scores.mean(), separate_scores - separate_scores.mean(), rtol=2e-3, atol=2e-4
        )

    def test_masked_documents_change_nothing(self, method: type[Estimator]) -> None:
        """Padding has neither loss nor gradient."""
        model, lists, stages = _beginning(self.make(method), self.data(method))
        for stage in stages:
            narrow = lists.batch(np.arange(20), noise=stage.noise, random=lambda _: np.random.default_rng(5))
            wide = replace(
                narrow,
                clicks=functional.pad(narrow.clicks, (0, 3), value=0.7),
                mask=functional.pad(narrow.mask, (0, 3), value=False),
                values=None if narrow.values is None else functional.pad(narrow.values, (0, 3), value=0.7),
                pairs=None if narrow.pairs is None else functional.pad(narrow.pairs, (0, 3, 0, 3)),
            )
            if stage.begin is not None:
                stage.begin(model.by_name)
            start, outcomes = deepcopy(model.state_dict()), []
            for batch in (narrow, wide):
                model.load_state_dict(start)
                model.zero_grad()
                losses, sums = model.losses(stage, batch)
                losses.sum().backward()  # type: ignore[no-untyped-call]
                if stage.update is not None:
                    assert sums is not None
                    stage.update(sums)
                gradients = [weights.grad for weights in model.parameters() if weights.grad is not None]
                outcomes.append([losses.detach(), *deepcopy(gradients), *deepcopy(model.state_dict()).values()])
            torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-5)

    def test_scores_depend_on_neither_order_nor_company(self, method: type[Estimator]) -> None:
        """Candidates in another order, a query among longer ones, queries without candidates."""
        estimator, test = self.fitted(method), small_lists().test
        together = self.scores(estimator)
        for start, end in list(zip(test.offsets[:-1], test.offsets[1:], strict=True))[:5]:
            candidates = test.features[start:end]
            alone = estimator.score(candidates)
            np.testing.assert_allclose(alone, together[start:end], rtol=1e-4, atol=1e-5)
            order = np.random.default_rng(0).permutation(len(candidates))
            np.testing.assert_allclose(alone[order], estimator.score(candidates[order]), rtol=1e-4, atol=1e-5)
        some = test.features[:5]
        np.testing.assert_array_equal(estimator.score(some, np.array([0, 0, 5, 5])), estimator.score(some))
        assert estimator.score(some[:0]).shape == (0,)

    def test_saving_and_loading_gives_the_same_ranker(self, method: type[Estimator], tmp_path: Path) -> None:
        """Scores, predicted clicks, options, learning curve; numbers of numpy serve as options."""
        estimator = self.make(method, seed=np.int64(3)).fit(self.data(method))
        estimator.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.method == method.name
        assert loaded.options == estimator.ranker_.options
        assert loaded.options["seed"] == 3
        assert loaded.history == estimator.ranker_.history
        assert loaded.factors == estimator.ranker_.factors
        test = small_lists().test
        np.testing.assert_array_equal(loaded.score(test.features, test.offsets), self.scores(estimator))
        if method.learns_from is ClickLog:
            log = small_log()
            np.testing.assert_array_equal(loaded.click_shares(log), estimator.click_shares(log))

    @pytest.mark.filterwarnings("ignore::ultr.errors.UltrWarning")
    def test_categories_and_missing_values_are_kept(self, method: type[Estimator], tmp_path: Path) -> None:
        """From the log through a saved model to scores, by codes and by values, whatever their order in a log."""
        data = mixed(self.data(method))
        self.make(method).fit(data).save(tmp_path / "model")
        ranker = load(tmp_path / "model")
        assert ranker.scaling.missing[:3].tolist() == [0, np.isnan(data.features[:, 1]).mean(), 0]
        rows = data.features[:30]
        scores = ranker.score(rows)
        assert np.isfinite(scores).all()
        frame: dict[str, Any] = {
            name: np.array(REGIONS)[column.astype(int)] if name in ranker.categories else column
            for name, column in zip(data.feature_names, rows.T, strict=True)
        }
        np.testing.assert_array_equal(ranker.score(frame), scores)
        if isinstance(data, ClickLog):
            assert ranker.categories == {data.feature_names[0]: REGIONS}
            frame[data.feature_names[0]] = ["nowhere"] * len(rows)
            others = np.column_stack([np.full(len(rows), REGIONS.index("other")), rows[:, 1:]])
            np.testing.assert_array_equal(ranker.score(frame), ranker.score(others))
            turned = data.with_categories({data.feature_names[0]: REGIONS[::-1]})
            np.testing.assert_array_equal(ranker.click_shares(turned), ranker.click_shares(data))

    def test_predicted_clicks_are_probabilities_in_the_proportion_of_the_shares(self, method: type[Estimator]) -> None:
        """Shares of a list sum to 1."""
        if method.learns_from is not ClickLog:
            pytest.skip("it does not model clicks")
        log = small_log()
        estimator = self.fitted(method)
        chances, shares = estimator.click_probabilities(log), estimator.click_shares(log)
        np.testing.assert_array_equal(estimator.predict_clicks(log), (shares, chances))
        lists = ragged.list_numbers(log.offsets)
        assert ((chances > 0) & (chances <= 1)).all()
        np.testing.assert_allclose(np.bincount(lists, shares), 1)
        uncut = np.bincount(lists, chances == 1)[lists] == 0
        np.testing.assert_allclose((chances / np.bincount(lists, chances)[lists])[uncut], shares[uncut], rtol=1e-6)

    def test_a_clone_is_an_unfitted_estimator_with_the_same_options(self, method: type[Estimator]) -> None:
        """As scikit-learn clones."""
        from sklearn.base import clone

        estimator = self.make(method, seed=3)
        estimator.ranker_ = None  # type: ignore[assignment]
        copy = clone(estimator)
        assert copy.get_params() == estimator.get_params()
        assert not hasattr(copy, "ranker_")

    def test_every_option_changes_something(self, method: type[Estimator]) -> None:
        """An option that changes neither learning curve nor scores is no option."""
        changes = self.common_changes | self.changes
        validation = small_lists().validation
        usual: dict[str, tuple[Any, Any]] = {}
        for option in self.make(method).get_params():
            if not self.has_effect(option, method):
                continue
            assert option in changes, f"give another value of {option!r} in `changes`"
            data, base = self.data_for(option, method), {}
            if option == "patience":
                base = known(self.overfitting, method)
            key = f"{sorted(base)} {id(data)}"
            if key not in usual:
                first = self.make(method, **base).fit(data, validation=validation)
                usual[key] = first.history_, self.scores(first)
            second = self.make(method, **base | {option: changes[option]}).fit(data, validation=validation)
            history, scores = usual[key]
            assert history != second.history_ or not np.array_equal(scores, self.scores(second)), option

    def few_steps_on(self, lists: int) -> dict[str, Any]:
        """Options of a few small steps, each on so many lists."""
        return {"relevance__steps": 5, "relevance__batch_size": lists, "relevance__learning_rate": 1e-4}

    def has_effect(self, option: str, method: type[Estimator]) -> bool:
        """False for an option that is to change nothing, with this relevance model."""
        return option != "device" and option not in method.without

    def data_for(self, option: str, method: type[Estimator]) -> Data:
        """The data on which an option is to change something."""
        return self.data(method)

    def test_more_training_fits_the_data_better(self, method: type[Estimator]) -> None:
        """By the value of validation on the training data themselves."""
        data = self.data(method)
        history = self.make(method, **known(self.longer, method)).fit(data, validation=data).history_
        values = [record.value for record in history if record.stage == history[0].stage]
        assert values[-1] > values[0]

    def test_one_feature_is_enough_to_tell_candidates_apart(self, method: type[Estimator]) -> None:
        """Normalisation must not take it away."""
        data = self.data(method)
        one = replace(data, features=data.features[:, :1], feature_names=data.feature_names[:1])
        assert len(np.unique(self.make(method).fit(one).score(one.features[:50]))) >= self.fewest_scores

    def test_data_that_it_cannot_learn_from_are_refused(self, method: type[Estimator]) -> None:
        """The wrong kind, and data without a click or a relevant document."""
        data = self.data(method)
        if isinstance(data, ClickLog):
            silent: Data = replace(data, clicks=np.zeros_like(data.clicks), pair_clicks=None, signals=())
        else:
            silent = replace(data, labels=np.zeros_like(data.labels))
        with pytest.raises(DataError, match="nothing to learn from"):
            self.make(method).fit(silent)
        wrong = small_log() if method.learns_from is JudgedLists else small_lists().train
        with pytest.raises(OptionError, match="learns from"):
            self.make(method).fit(wrong)
        with pytest.raises(OptionError, match="patience needs validation data"):
            self.make(method, patience=3).fit(data)

    def test_candidates_that_do_not_fit_are_named(self, method: type[Estimator]) -> None:
        """An unfitted estimator, other features, infinity."""
        test = small_lists().test
        with pytest.raises(OptionError, match="not fitted yet"):
            self.make(method).score(test.features)
        estimator = self.fitted(method)
        with pytest.raises(DataError, match="the ranker knows 64 features"):
            estimator.score(test.features[:, :10])
        broken = test.features[:4].copy()
        broken[2, 5] = np.inf
        with pytest.raises(DataError, match="candidate 2 has an infinite feature 'linear_6'"):
            estimator.score(broken)

    def test_options_that_do_not_fit_are_refused(self, method: type[Estimator]) -> None:
        """Those that all methods have; nothing is trained."""
        wrong: Sequence[tuple[dict[str, Any], str]] = [
            ({"relevance": "mlp"}, "relevance must be a relevance model"),
            ({"evaluate_every": 0}, "evaluate_every must be an integer of at least 1, got 0"),
            ({"seed": 2**70}, "seed must be an integer"),
            ({"seed": -1}, "seed must be an integer of at least 0"),
            ({"device": "nonsense"}, "torch cannot use the device 'nonsense'|on the CPU only, got device 'nonsense'"),
        ]
        for options, message in wrong:
            with pytest.raises(OptionError, match=message):
                method(**options).fit(self.data(method))


def _untrained(estimator: Estimator, data: Data) -> tuple[RankingModel, TrainingLists, Sequence[Stage]]:
    """The model before its first step, the lists of the data, and the stages."""
    lists = estimator.lists_of(data, Inputs(data.features, Preprocessing(FeatureScaling.fit(data.features))))
    factors = [factor for factor in factors_of(data) if estimator.learns(factor)]
    model = estimator.build(len(data.feature_names), factors, seed=0)
    return model, lists, estimator.all_stages(model.objective, lists, 10)


def _beginning(estimator: Estimator, data: Data) -> tuple[RankingModel, TrainingLists, Sequence[Stage]]:
    """The same of a method whose losses have a gradient in parameters; others are skipped."""
    model, lists, stages = _untrained(estimator, data)
    if not list(model.by_name["relevance"].parameters()):
        pytest.skip("losses are functions of r, whatever gives it; a network has a gradient to look at")
    return model, lists, stages


def _draws(estimator: Estimator, log: ClickLog) -> bool:
    """True if a stage asks for random numbers, or if there is none because a library trains on drawn sessions."""
    _, _, stages = _untrained(estimator, log)
    return not stages or any(stage.noise for stage in stages)


@lru_cache(maxsize=1)
def _collapsed_and_separate() -> tuple[ClickLog, ClickLog]:
    """A log in which every list has four impressions, and the same log with a row for each of them."""
    few = small_log().select(small_log().queries < 20)
    count, clicks = few.lists, few.clicks % 5
    rows = ragged.rows_of(np.repeat(np.arange(count), 4), few.offsets)
    turns = np.repeat(np.tile(np.arange(4), count), few.lengths.repeat(4))
    separate_clicks = (clicks[rows] > turns).astype(np.int64)
    offsets = ragged.from_lengths(few.lengths.repeat(4))
    separate = replace(
        few,
        documents=few.documents[rows],
        offsets=offsets,
        factors=tuple(replace(factor, values=factor.values[rows]) for factor in few.factors),
        impressions=np.ones(4 * count, dtype=np.int64),
        clicks=separate_clicks,
        queries=few.queries.repeat(4),
        signals=(Signal("purchase", (np.minimum(clicks, 3)[rows] > turns).astype(np.int64)),),
        pair_clicks=np.minimum(*(separate_clicks[members] for members in ragged.pair_members(offsets))),
    )
    return separate.collapse(), separate
