"""The methods by name."""

from __future__ import annotations

from dataclasses import is_dataclass
from pathlib import Path

from ultr.data.categories import category_columns
from ultr.data.click_log import ClickLog
from ultr.errors import ModelFileError, OptionError
from ultr.methods.affine import Affine
from ultr.methods.auto import Auto
from ultr.methods.click_baseline import ClickBaseline
from ultr.methods.distilled import Distilled
from ultr.methods.dla import DLA
from ultr.methods.doubly_robust import DoublyRobust
from ultr.methods.estimator import Estimator
from ultr.methods.inverse_propensity import InversePropensity
from ultr.methods.label_baseline import LabelBaseline
from ultr.methods.lbd import LBD
from ultr.methods.lightgbm_ranker import LightGBMRanker
from ultr.methods.model_file import load_manifest, load_weights, put_weights
from ultr.methods.pair_debias import PairDebias
from ultr.methods.ranker import Ranker
from ultr.methods.regression_em import RegressionEM
from ultr.methods.safe import SAFE, with_logged_order
from ultr.methods.sample import load_sample
from ultr.methods.two_tower import TwoTower
from ultr.methods.upe import UPE
from ultr.methods.vectorization import Vectorization
from ultr.methods.xgboost_ranker import XGBoostRanker
from ultr.open_family import Registry
from ultr.relevance.kinds import relevance_of, with_tuples
from ultr.relevance.preprocessing import Preprocessing
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.relevance.trees import BoostedTrees
from ultr.scoring.forest import LEAF
from ultr.train.ranking_model import RankingModel

_BUILT_IN: tuple[type[Estimator], ...] = (
    Auto,
    Vectorization,
    Affine,
    DLA,
    UPE,
    LBD,
    TwoTower,
    RegressionEM,
    PairDebias,
    InversePropensity,
    DoublyRobust,
    LightGBMRanker,
    XGBoostRanker,
    ClickBaseline,
    LabelBaseline,
)


def _fault(kind: type) -> str | None:
    """What a class lacks to be a method, as the end of "it must ..."."""
    if not issubclass(kind, Estimator) or not is_dataclass(kind):
        return "be a dataclass that derives from ultr.methods.estimator.Estimator"
    missing = sorted(kind.__abstractmethods__)
    return f"define {' and '.join(missing)}" if missing else None


METHODS: Registry[Estimator] = Registry("method", "ultr.methods", _BUILT_IN, fault=_fault)
register = METHODS.register
method = METHODS.choose


def methods_with(relevance: type[Relevance]) -> dict[str, type[Estimator]]:
    """The methods that work with this kind of relevance model, by name."""
    return {name: kind for name, kind in METHODS.items() if issubclass(relevance, kind.takes)}


def kind_of(name: str) -> type[Estimator]:
    """The class of a ranker's method: one that can be trained by name, or `Distilled`, which needs a teacher."""
    return Distilled if name == Distilled.name else method(name)


def _looks_beyond(model: RelevanceModel, features: int) -> bool:
    """True if a tree looks at a feature that there is not."""
    return isinstance(model, BoostedTrees) and int(model.forest.features.max(initial=LEAF)) >= features


def load(folder: str | Path) -> Ranker:
    """The ranker that was saved in a folder."""
    manifest = load_manifest(folder)
    kind = kind_of(manifest.method)
    tensors = load_weights(folder, manifest)
    try:
        options = with_tuples(manifest.options)
        estimator = kind().set_params(**options | {"relevance": relevance_of(options["relevance"]), "device": "cpu"})
        estimator.check()
        columns = [factor.column for factor in manifest.factors]
        if bool(columns) != (kind.learns_from is ClickLog) or columns != list(range(len(columns))):
            raise OptionError("wrong bias factors")
        learned = [factor for factor in manifest.factors if estimator.learns(factor)]
        scaling = manifest.feature_scaling()
        categories = category_columns(manifest.feature_names, manifest.categories)
        layout = Preprocessing(scaling, categories).layout

        def build() -> RankingModel:
            return with_logged_order(estimator.build(layout, learned, seed=0), manifest.choices.get(SAFE), layout)

        model = put_weights(folder, build, tensors)
        if any(_looks_beyond(each, len(manifest.feature_names)) for each in model.by_name.values()):
            raise OptionError("a tree looks at a feature that there is not")
    except ModelFileError:
        raise
    except (OptionError, TypeError, KeyError, AttributeError, ValueError, IndexError) as error:
        raise ModelFileError(f"the manifest of {folder} does not fit {kind.__name__}: {error}") from error
    names = tuple(manifest.feature_names)
    return Ranker(
        method=manifest.method,
        options=manifest.options,
        model=model,
        feature_names=names,
        scaling=scaling,
        categories=manifest.categories,
        factors=tuple(manifest.factors),
        learned_factors=tuple(factor.name for factor in learned),
        clicks_per_impression=manifest.clicks_per_impression,
        history=tuple(manifest.history),
        choices=manifest.choices,
        sample=load_sample(folder, names, digest=manifest.sample_digest),
        origin=manifest.origin,
        provenance=manifest.provenance,
    )
