"""A relevance model from outside the package: a table of r(x) by document, which has no parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ultr import checks
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import ModelFileError, OptionError
from ultr.exporting import export
from ultr.methods import ClickBaseline, Vectorization, load, methods_with
from ultr.methods.estimator import Estimator
from ultr.metrics import kendall_tau
from ultr.relevance import Documents, InputLayout, Relevance, RelevanceModel
from ultr.relevance.kinds import KINDS
from ultr.relevance.recipe import RECIPES, Training
from ultr.scoring import Scorer
from ultr.train.checkpoint import Checkpoint

DOCUMENTS, SHOWN, PAGES = 20, 6, 3_000
GRADES = np.random.default_rng(1).permutation(DOCUMENTS) % 5


class Lookup(nn.Module):
    """Values by the column that is highest."""

    table: Tensor

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, features: Tensor) -> Tensor:
        return self.table[features.argmax(dim=-1)]


class TableModel(RelevanceModel):
    """r of each document, known by its one-hot features; `step` moves it down the gradient, in steps of one length."""

    def __init__(self, values: Tensor, rate: float) -> None:
        super().__init__()
        self.lookup, self.rate = Lookup(values), rate
        self.known: Tensor | None = None

    @property
    def table(self) -> Tensor | None:
        return None if self.known is None else self.lookup.table.requires_grad_()

    def begin(self, documents: Documents) -> None:
        self.known = documents.rows

    def forward(self, documents: Documents) -> Tensor:
        found: Tensor = self.lookup(documents.preprocessed)
        return found

    @torch.no_grad()
    def step(self, gradient: Tensor, curvature: Tensor) -> None:
        self.lookup.table -= self.rate * gradient / gradient.abs().max()

    def project(self, vector: Tensor) -> TableModel:
        return TableModel(self.lookup.table @ vector[:, None], self.rate)

    def graph(self) -> nn.Module:
        return self.lookup


@dataclass(frozen=True, kw_only=True)
class Table(Relevance):
    kind: ClassVar[str] = "table"

    rate: float = 0.1
    steps: int = 100

    def check(self) -> None:
        checks.positive("rate", self.rate)

    def build(self, features: InputLayout, outputs: int, *, generator: torch.Generator) -> TableModel:
        return TableModel(0.1 * torch.randn(features.width, outputs, generator=generator), self.rate)

    def training(self) -> Training:
        return replace(RECIPES["collapsed"], steps=self.steps, batch_size=None)


@pytest.fixture(scope="module")
def log() -> ClickLog:
    """Sessions on lists in which every document comes at every position."""
    random = np.random.default_rng(0)
    shown = np.stack([random.permutation(DOCUMENTS)[:SHOWN] for _ in range(PAGES)])
    chances = (0.1 + 0.2 * GRADES[shown]) / np.arange(1, SHOWN + 1)
    return ClickLog.of(
        features=np.eye(DOCUMENTS),
        documents=shown.ravel(),
        offsets=np.arange(PAGES + 1) * SHOWN,
        clicks=(random.random(shown.shape) < chances).ravel(),
        pairs=True,
    )


@pytest.fixture(scope="module")
def judged() -> JudgedLists:
    shown = np.random.default_rng(2).integers(DOCUMENTS, size=60 * SHOWN)
    offsets = np.arange(61) * SHOWN
    return JudgedLists.of(features=np.eye(DOCUMENTS)[shown], labels=GRADES[shown], offsets=offsets)


def _stop_after_two(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, done = Checkpoint.save, []

    def save(self: Checkpoint, *state: object) -> None:
        whole(self, *state)  # type: ignore[arg-type]
        done.append(1)
        if len(done) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", save)


@pytest.mark.parametrize("method", methods_with(Table).values(), ids=methods_with(Table))
def test_it_learns_under_every_method(method: type[Estimator], log: ClickLog, judged: JudgedLists) -> None:
    data = judged if method.learns_from is JudgedLists else log
    fitted = method(relevance=Table(), evaluate_every=1).fit(data, validation=data)
    first = [record.value for record in fitted.history_ if record.stage == fitted.history_[0].stage]
    assert first[0] is not None
    assert first[-1] is not None
    assert first[-1] > first[0]
    scores = fitted.score(np.eye(DOCUMENTS, dtype=np.float32))
    assert kendall_tau(GRADES.astype(np.float64), scores, np.array([0, DOCUMENTS]))[0] > 0.7
    assert not list(fitted.ranker_.model.models["relevance"].parameters())


def test_only_the_models_that_a_stage_moves_learn(log: ClickLog) -> None:
    short, long = (Vectorization(relevance=Table(), base_steps=steps).fit(log) for steps in (1, 50))
    tables = [fitted.ranker_.model.state_dict()["models.relevance.lookup.table"] for fitted in (short, long)]
    assert tables[0].equal(tables[1])


def test_a_stopped_run_goes_on_to_the_table_of_one_that_ran_through(
    log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ClickBaseline(relevance=Table(), evaluate_every=10).fit(log)
    _stop_after_two(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        ClickBaseline(relevance=Table(), evaluate_every=10).fit(log, checkpoint=tmp_path / "run")
    monkeypatch.undo()
    resumed = ClickBaseline(relevance=Table(), evaluate_every=10).fit(log, checkpoint=tmp_path / "run")
    assert resumed.history_ == whole.history_
    tables = [fitted.ranker_.model.state_dict()["models.relevance.lookup.table"] for fitted in (whole, resumed)]
    assert tables[0].equal(tables[1])


def test_its_options_are_checked_and_may_be_set() -> None:
    method = ClickBaseline(relevance=Table())
    assert method.get_params()["relevance__rate"] == 0.1
    assert method.set_params(relevance__rate=3.0).relevance == Table(rate=3.0)
    with pytest.raises(OptionError, match="rate must be a number above 0"):
        ClickBaseline(relevance=Table(rate=-1.0)).check()


def test_it_is_saved_and_read_where_its_kind_is_known(
    log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = Vectorization(relevance=Table(), dimension=2).fit(log)
    fitted.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="kind of relevance model must be one of mlp, trees, got 'table'"):
        load(tmp_path / "model")
    monkeypatch.setitem(KINDS, "table", Table)
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score(log.features), fitted.score(log.features))


@pytest.mark.usefixtures("_operators_read_once")
@pytest.mark.parametrize("pointwise", [False, True])
def test_it_is_exported_by_its_own_graph(log: ClickLog, tmp_path: Path, *, pointwise: bool) -> None:
    fitted = ClickBaseline(relevance=Table()).fit(log)
    export(fitted, tmp_path / "model.onnx", pointwise=pointwise)
    features = np.eye(DOCUMENTS, dtype=np.float32)
    assert Scorer.load(tmp_path / "model.onnx").score(features) == pytest.approx(fitted.score(features), abs=1e-5)
