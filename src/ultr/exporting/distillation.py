"""A ranker as a forest or as one network that its scores have taught, for engines or to score faster."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Provenance
from ultr.errors import DataError, OptionError
from ultr.exporting.cost import Cost, cost_of
from ultr.exporting.forest_file import forest_of
from ultr.methods.distilled import TREES, Distilled
from ultr.methods.estimator import Estimator
from ultr.methods.ranker import Ranker
from ultr.methods.sample import sample_of
from ultr.metrics import kendall_tau, mean, same_top
from ultr.relevance.relevance_model import Relevance
from ultr.relevance.trees import Trees
from ultr.seeding import generator
from ultr.train.progress import Bar

HELD_OUT = 0.1
"""Share of the queries that decide when enough is learned, and that the student is measured on."""


@dataclass(frozen=True, eq=False)
class Distillation:
    """A ranker taught by another one, and how near it comes to it on lists that it was not taught on."""

    ranker: Ranker
    """The one that was taught; it can be saved, evaluated and exported like any other ranker."""
    taught_on: int
    """Lists that it was taught on."""
    mixed: int
    """Further lists, made of these by mixing the features of documents."""
    measured_on: int
    """Lists that it was measured on."""
    kendall_tau: float
    """Agreement with the order of the other ranker, the mean over lists."""
    same_top: float
    """The share of lists in which both have the same document at the top."""
    cost: Cost | None
    """None where no candidate is relevant."""

    def as_json(self) -> dict[str, Any]:
        """The figures."""
        figures = {name: value for name, value in vars(self).items() if name not in ("ranker", "cost")}
        return figures | {"cost": None if self.cost is None else asdict(self.cost)}


def distil(
    ranker: Ranker | Estimator,
    data: ClickLog | JudgedLists | None = None,
    *,
    lists: JudgedLists | None = None,
    relevance: Relevance = TREES,
    progress: bool = False,
) -> Distillation:
    """Teach a forest, or one network, to order documents as another ranker does.

    Args:
        ranker: A fitted estimator, or the ranker that `load` gave.
        data: A click log or judged lists to teach on, of which only the features count; by default the training lists
            that the model kept. A tenth of the queries is held out to decide when enough is learned.
        lists: Judged lists to measure the student on; by default those that were held out, with clicks for labels if
            they are of a log.
        relevance: Options of the trees, or of a network such as `MLP(hidden=(128, 64))`.
        progress: Whether to show a bar.

    """
    ranker = ranker.ranker_ if isinstance(ranker, Estimator) else ranker
    if isinstance(relevance, Trees) and forest_of(ranker) is not None:
        raise OptionError("the model is a forest already, which is exported as it is; leave distillation out")
    source = ranker.sample if data is None else data
    if source is None:
        raise OptionError("the model was saved without training lists to teach on; give some (--log, --data)")
    for each in (source, lists):
        if each is not None and each.feature_names != ranker.feature_names:
            raise DataError(
                f"the model knows {len(ranker.feature_names)} features, the lists to teach on have "
                f"{len(each.feature_names)}, or other names; give it the data it was trained for"
            )
    if isinstance(source, ClickLog):
        source = source.with_categories(ranker.categories)
    taught, held_out = _split(source, seed=int(ranker.options.get("seed", 0)))
    bar = Bar("distilling") if progress else None
    student = Distilled(relevance=relevance).teach(ranker, taught, held_out, observer=bar)
    if data is not None and ranker.provenance is not None:
        student = replace(student, provenance=ranker.provenance.beside(Provenance.of(taught, held_out)))
    if lists is None:
        lists = sample_of(held_out) if isinstance(held_out, ClickLog) else held_out
    scores, others = (each.score(lists.features, lists.offsets) for each in (ranker, student))
    return Distillation(
        ranker=student,
        taught_on=len(taught.offsets) - 1,
        mixed=(len(taught.offsets) - 1) * student.choices["copies"],
        measured_on=lists.queries,
        kendall_tau=mean(kendall_tau(scores, others, lists.offsets)),
        same_top=mean(same_top(scores, others, lists.offsets)),
        cost=cost_of(ranker, student, lists),
    )


def _split(data: ClickLog | JudgedLists, *, seed: int) -> tuple[ClickLog | JudgedLists, ClickLog | JudgedLists]:
    """The data without a share of their queries, and that share; of a log, what training holds out with this seed."""
    if isinstance(data, ClickLog):
        return data.split(HELD_OUT, seed=seed)
    known, queries = np.unique(data.query_ids, return_inverse=True)
    if len(known) < 2:
        raise DataError(f"nothing can be taught on {len(known)} queries; give more of them (--log, --data)")
    count = max(1, round(HELD_OUT * len(known)))
    held_out = np.isin(queries, generator(seed, "held-out queries").permutation(len(known))[:count])
    return data.select(~held_out), data.select(held_out)
