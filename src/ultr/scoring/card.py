"""The description of an exported ranker, which travels inside the file."""

from __future__ import annotations

from typing import Final, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from ultr.data.training_range import TrainingRange
from ultr.errors import ModelFileError

KEY = "ultr"
"""The name under which the card stands in the metadata of an ONNX file."""
FORMAT: Final = "ultr onnx 1"
Form = Literal["lists", "flat", "documents"]
FORMS: dict[Form, str] = {
    "lists": "features [queries, documents, features] and mask [queries, documents] -> scores [queries, documents]",
    "flat": "features [documents, features] and offsets [queries + 1] -> scores [documents]",
    "documents": "features [documents, features] -> scores [documents]",
}
"""Inputs and outputs of each form of graph."""
LIST_FORMS = tuple(name for name in FORMS if name != "documents")
"""The forms that rank lists; `documents` scores each candidate alone."""
INPUTS: dict[Form, dict[str, tuple[str, int]]] = {
    "lists": {"features": ("tensor(float)", 3), "mask": ("tensor(bool)", 2)},
    "flat": {"features": ("tensor(float)", 2), "offsets": ("tensor(int64)", 1)},
    "documents": {"features": ("tensor(float)", 2)},
}
"""The type and the number of dimensions of each input, in the runtime's words."""


class Card(BaseModel):
    """The description of an exported ranker: enough to feed it and to know where it came from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["ultr onnx 1"] = FORMAT
    form: Form
    """Inputs and outputs of the graph; see `FORMS`."""
    method: str
    pointwise: bool
    """True if what a list adds to a score, such as a base vector, is fixed at its mean over training queries."""
    feature_names: list[str] = Field(min_length=1)
    typical: list[FiniteFloat]
    """The median of each feature, which a network takes for a missing one (NaN or infinite), with an indicator if that
    was frequent enough in training; of categories, the most frequent code."""
    categories: dict[str, tuple[str, ...]] = {}
    """The values of each categorical feature; the graph takes the place of a value as its code. One that is not among
    them is given by any number that is no place, such as -1: it counts as `other` if that is a value, else as missing.
    """
    missing: dict[str, FiniteFloat] = {}
    """The share of the training documents in which a feature was missing, of those that were: others are not expected
    to be."""
    minimum: list[FiniteFloat] = []
    """The smallest value of each feature in training; empty, like `maximum`, in files that were exported before it was
    noted."""
    maximum: list[FiniteFloat] = []
    model_digest: str
    """Names the weights that were exported."""
    data_fingerprint: str
    """Names the data that they were trained on; the manifest of a model folder has both."""
    versions: dict[str, str]

    @model_validator(mode="after")
    def _one_value_for_each_feature(self) -> Self:
        if len(self.typical) != len(self.feature_names):
            raise ValueError("typical and feature_names differ in length")
        if not {len(self.minimum), len(self.maximum)} <= {0, len(self.feature_names)}:
            raise ValueError("minimum or maximum and feature_names differ in length")
        if len(set(self.feature_names)) != len(self.feature_names):
            raise ValueError("feature_names has a name twice")
        if not self.categories.keys() | self.missing.keys() <= set(self.feature_names):
            raise ValueError("categories or missing name what is no feature")
        return self

    def training_range(self) -> TrainingRange | None:
        """The values that training had; None in files that were exported before they were noted."""
        if not self.minimum or not self.maximum:
            return None
        return TrainingRange(
            names=tuple(self.feature_names),
            minimum=np.array(self.minimum, dtype=np.float32),
            maximum=np.array(self.maximum, dtype=np.float32),
            was_missing=np.isin(self.feature_names, list(self.missing)),
            categories=self.categories,
        )

    @classmethod
    def parse(cls, text: str, *, file: object) -> Card:
        """The card of a file; one that does not fit is a `ModelFileError`."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the card"
            raise ModelFileError(
                f"{file} was not exported by a version of ultr that this one reads ({where}: {fault['msg']}); "
                "export the model again"
            ) from error
