"""A ranker in an ONNX file, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Self

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.categories import Categories, category_columns
from ultr.data.training_range import TrainingRange
from ultr.errors import DataError, ModelFileError
from ultr.scoring.card import INPUTS, KEY, Card
from ultr.scoring.external_data import has_external_data
from ultr.scoring.forest import Forest
from ultr.scoring.onnx_forest import forest_in
from ultr.scoring.tree_shapley import Boxes

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions

AT_ONCE = 2**14
"""More candidates go through the graph in several parts, cut between queries: it is as fast, and memory stays small."""
TRIAL_SECONDS = 10.0
"""Time for a graph to score three typical candidates when it is loaded."""


class Scorer:
    """Scores candidates as the exported ranker does; knows its features and where it came from.

    It can be used by several threads at once.
    """

    def __init__(self, session: InferenceSession, card: Card, content: bytes, *, file: object = "the model") -> None:
        self._session = session
        self._content = content
        self.card = card
        self.digest = blake2b(content, digest_size=16).hexdigest()
        """Digest of the file: the same for the same bytes."""
        self.file = file

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that it takes, in order."""
        return tuple(self.card.feature_names)

    @property
    def categories(self) -> Categories:
        """The values of each categorical feature by its name."""
        return self.card.categories

    @cached_property
    def training_range(self) -> TrainingRange | None:
        """The values that training had; None in files that were exported before they were noted."""
        return self.card.training_range()

    @cached_property
    def codes(self) -> dict[int, dict[str, int]]:
        """The code of each value of each categorical feature, by its column."""
        columns = category_columns(self.card.feature_names, self.card.categories)
        return {column: {value: code for code, value in enumerate(values)} for column, values in columns.items()}

    @cached_property
    def forest(self) -> Forest | None:
        """The forest in the file; None if it holds something else."""
        return forest_in(self._content)

    @cached_property
    def boxes(self) -> list[Boxes] | None:
        """The leaves of that forest, by which it is explained."""
        return None if self.forest is None else Boxes.of(self.forest)

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None, seconds: float = TRIAL_SECONDS) -> Self:
        """The ranker of a file that `ultr export` wrote, run by this many threads (by default one a core)."""
        file = Path(path)
        if file.is_dir():
            raise ModelFileError(f"{path} is a folder; give the file that `ultr export {path} --to onnx` writes")
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ModelFileError(f"cannot read {path}: {error.strerror}; give a file of `ultr export`") from error
        return cls.of_bytes(content, file=path, threads=threads, seconds=seconds)

    @classmethod
    def of_bytes(
        cls,
        content: bytes,
        *,
        file: object = "the model",
        threads: int | None = None,
        seconds: float = TRIAL_SECONDS,
    ) -> Self:
        """The ranker in the content of a file, which messages call `file`.

        It must have scored typical candidates within these seconds; a file that cannot is a `ModelFileError`.
        """
        session = _session(content, file=file, threads=threads)
        text = session.get_modelmeta().custom_metadata_map.get(KEY)
        if text is None:
            raise ModelFileError(f"{file} is an ONNX model, but not one that `ultr export` wrote")
        card = Card.parse(text, file=file)
        _check_signature(session, card, file=file)
        scorer = cls(session, card, content, file=file)
        scorer._try_out(seconds)
        return scorer

    def _try_out(self, seconds: float) -> None:
        """Score two queries of typical candidates; a `ModelFileError` if that fails, or takes longer than this."""
        from onnxruntime import RunOptions

        run = RunOptions()
        typical = np.tile(np.array(self.card.typical, dtype=np.float32), (3, 1))
        with _after(seconds, lambda: setattr(run, "terminate", True)):
            try:
                scores = self.score(typical, np.array([0, 2, 3]), run=run)
            except ModelFileError as error:
                if run.terminate:
                    raise ModelFileError(
                        f"{self.file} did not score three candidates within {seconds:g} seconds; export the model again"
                    ) from error
                raise
        if not np.isfinite(scores).all():
            raise ModelFileError(f"{self.file} has no finite scores for typical candidates; export the model again")

    def score(self, features: Floats, offsets: Integers | None = None, *, run: RunOptions | None = None) -> Floats:
        """Scores of candidates, higher is better; without offsets they are the candidates of one query.

        A missing feature (NaN) counts as its typical value in the training data, with an indicator if it was missing
        often enough there; trees send it where they learned to. Categories are given as codes (`codes`).

        Another thread can end it by `run.terminate = True`; that, and a graph that fails, is a `ModelFileError`.
        """
        matrix = np.ascontiguousarray(features, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.card.feature_names):
            raise DataError(
                f"the ranker knows {len(self.card.feature_names)} features, got an array of shape {matrix.shape}; "
                "give one row a candidate with the features in the order of the card's feature_names"
            )
        bounds = np.array([0, len(matrix)]) if offsets is None else np.asarray(offsets, dtype=np.int64)
        ragged.check_offsets(bounds, len(matrix), what="candidates")
        if self.card.form == "documents":
            bounds = np.arange(len(matrix) + 1)
        scores = np.empty(len(matrix), dtype=np.float32)
        for span in ragged.spans(bounds, most=AT_ONCE):
            if span.rows.start < span.rows.stop:
                some, offsets = matrix[span.rows], ragged.from_lengths(span.lengths)
                match self.card.form:
                    case "documents":
                        scores[span.rows] = self._run(run, features=some)
                    case "flat":
                        scores[span.rows] = self._run(run, features=some, offsets=offsets)
                    case "lists":
                        scores[span.rows] = self._score_padded(run, some, offsets)
        return scores

    def _score_padded(self, run: RunOptions | None, matrix: Floats, offsets: Integers) -> Floats:
        """The scores of a graph that takes padded lists.

        Lists of similar length go through it together, so that less than half of what it computes is padding: one long
        list among many short ones would else take memory for as many long ones.
        """
        lengths = np.diff(offsets)
        if len(lengths) == 1:
            return self._score_block(run, matrix, offsets)
        scores = np.empty(len(matrix), dtype=np.float32)
        doublings = np.frexp(lengths)[1]
        for doubling in np.unique(doublings[lengths > 0]):
            lists = np.flatnonzero(doublings == doubling)
            rows = ragged.rows_of(lists, offsets)
            scores[rows] = self._score_block(run, matrix[rows], ragged.from_lengths(lengths[lists]))
        return scores

    def _score_block(self, run: RunOptions | None, matrix: Floats, offsets: Integers) -> Floats:
        mask = ragged.mask(offsets, width=int(np.diff(offsets).max()))
        if mask.all():
            padded = matrix.reshape(*mask.shape, -1)
        else:
            padded = np.zeros((*mask.shape, matrix.shape[1]), dtype=np.float32)
            padded[mask] = matrix
        return self._run(run, features=padded, mask=mask)[mask]

    def _run(self, run: RunOptions | None, **inputs: np.ndarray) -> Floats:
        wanted = inputs["features"].shape[:-1]
        try:
            (scores,) = self._session.run(None, inputs, run)
        # onnxruntime has an exception of its own for each way to fail, and no common one.
        except Exception as error:
            raise ModelFileError(f"{self.file} cannot score these candidates; export the model again") from error
        if scores.shape != wanted:
            raise ModelFileError(
                f"{self.file} gives scores of shape {scores.shape} to candidates of shape {wanted}; export it again"
            )
        return np.asarray(scores)


def _session(content: bytes, *, file: object, threads: int | None) -> InferenceSession:
    """A session of the runtime; a file that is no ONNX model, or not all of one, is a `ModelFileError`."""
    from onnxruntime import InferenceSession, SessionOptions

    damaged = f"{file} is damaged or not an ONNX model; export the model again"
    try:
        is_elsewhere = has_external_data(content)
    except ValueError as error:
        raise ModelFileError(damaged) from error
    if is_elsewhere:
        raise ModelFileError(f"{file} has weights in other files, which are not read; export it again, into one file")
    options = SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")
    try:
        # What is constant would be computed while loading, which cannot be stopped; the first scores can.
        return InferenceSession(
            content, sess_options=options, providers=["CPUExecutionProvider"], disabled_optimizers=["ConstantFolding"]
        )
    except Exception as error:
        raise ModelFileError(damaged) from error


def _check_signature(session: InferenceSession, card: Card, *, file: object) -> None:
    """Raise a `ModelFileError` unless the graph has the inputs and the one output of its form."""
    wanted = INPUTS[card.form]
    inputs = {each.name: (each.type, len(each.shape)) for each in session.get_inputs()}
    outputs = [(each.type, len(each.shape)) for each in session.get_outputs()]
    if inputs != wanted or outputs != [("tensor(float)", wanted["features"][1] - 1)]:
        raise ModelFileError(f"{file} has other inputs or outputs than its form ({card.form}) has; export it again")
    width = next(each.shape[-1] for each in session.get_inputs() if each.name == "features")
    if width != len(card.feature_names):
        raise ModelFileError(f"{file} takes {width} features and names {len(card.feature_names)}; export it again")


@contextmanager
def _after(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Act if what is inside takes longer than this."""
    timer = Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
