"""A few lists of the training data that stay with a model, so that whatever is made of it can be checked against it."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as of_bytes
from safetensors.numpy import save as to_bytes

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import ModelFileError
from ultr.files import check_is_file

FILE = "sample.safetensors"
GRADES = 4
"""The grade of a list's most clicked document."""
DOCUMENTS, BYTES = 5_000, 8 * 2**20
"""At most so many documents, and so many bytes of features."""


def sample_of(data: ClickLog | JudgedLists) -> JudgedLists:
    """Lists at even distances through the data, with numbers for queries; several lists of a log may be of one query.

    In those of a log, clicked documents count as relevant, by grades: their clicks as a share of the most of the list.
    """
    lengths = np.diff(data.offsets)
    filled = np.flatnonzero(lengths)
    most = max(1, min(DOCUMENTS, BYTES // (4 * max(len(data.feature_names), 1))))
    wanted = int(np.clip(most / lengths[filled].mean(), 1, len(filled)))
    lists = filled[np.linspace(0, len(filled) - 1, wanted).astype(np.int64)]
    # Lists of very different lengths may be more than wanted all the same; the first always stays.
    lists = lists[: max(1, int(np.searchsorted(np.cumsum(lengths[lists]), most, side="right")))]
    rows = ragged.rows_of(lists, data.offsets)
    documents: Integers
    relevant: Integers
    if isinstance(data, ClickLog):
        documents, queries = data.documents[rows], data.queries[lists]
        clicks, bounds = data.clicks[rows], ragged.from_lengths(lengths[lists])
        most_clicked = np.repeat(np.maximum.reduceat(clicks, bounds[:-1]), lengths[lists])
        relevant = np.ceil(GRADES * clicks / np.maximum(most_clicked, 1)).astype(np.int64)
    else:
        documents, relevant, queries = rows, data.labels[rows], lists
    return JudgedLists.of(
        features=data.features[documents],
        labels=relevant,
        offsets=ragged.from_lengths(lengths[lists]),
        query_ids=[str(query) for query in queries],
        feature_names=data.feature_names,
    )


def save_sample(folder: Path, sample: JudgedLists) -> str:
    """Write the sample beside the weights; the digest of its file."""
    queries = np.unique(sample.query_ids, return_inverse=True)[1]
    arrays = {"features": sample.features, "labels": sample.labels, "offsets": sample.offsets, "queries": queries}
    content = to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    (folder / FILE).write_bytes(content)
    (folder / FILE).chmod(0o644)
    return _digest(content)


def load_sample(folder: str | Path, feature_names: tuple[str, ...], *, digest: str | None = None) -> JudgedLists | None:
    """The sample of a model folder; None if it was saved without one. Older folders have no digest of it."""
    path = Path(folder) / FILE
    if not path.exists():
        return None
    try:
        check_is_file(path)
        content = path.read_bytes()
        if digest is not None and _digest(content) != digest:
            raise ValueError("its digest is another")
        arrays = of_bytes(content)
        features, labels, offsets = (arrays[name] for name in ("features", "labels", "offsets"))
        # Older folders do not tell which lists are of one query.
        queries = [str(query) for query in arrays["queries"]] if "queries" in arrays else None
        return JudgedLists.of(
            features=features, labels=labels, offsets=offsets, query_ids=queries, feature_names=feature_names
        )
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, IndexError) as error:
        raise ModelFileError(f"{path} is damaged ({error}); save the model again") from error


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
