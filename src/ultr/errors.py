"""Every exception that ultr raises on purpose.

    UltrError                 anything a user can mend; the command line prints it and exits with 2
    ├── OptionError           an argument or option with a value that does not fit
    │   ├── NotFittedError    an estimator that was asked for its ranker before `fit`
    │   └── WarmStartError    an earlier ranker whose weights training cannot begin with
    ├── DataError             a file, folder or array with content that cannot be used
    │   └── ModelFileError    a model or checkpoint folder that is damaged or does not fit
    ├── TrainingError         training had to stop (a loss that is not finite)
    ├── ExportError           an exported ranker scores otherwise than the model
    ├── PluginError           a method, click model or the like from outside the package that cannot be used
    └── MissingExtraError     a part of ultr whose optional dependencies are not installed

    UltrWarning               a result that is right, but not what one might take it for
    └── SeenDataWarning       rankers measured on data that they were, or may have been, trained on

Messages are one sentence: what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class UltrError(Exception):
    """Anything that a user can mend."""


class OptionError(UltrError, ValueError):
    """An argument or option has a value that does not fit."""


class NotFittedError(OptionError, AttributeError):
    """An estimator was asked for its ranker before `fit`."""


class WarmStartError(OptionError):
    """Training cannot begin with the weights of an earlier ranker."""


class DataError(UltrError, ValueError):
    """A file, folder or array has content that cannot be used."""


class ModelFileError(DataError):
    """A model or checkpoint folder is damaged or does not fit what reads it."""


class TrainingError(UltrError, RuntimeError):
    """Training had to stop."""


class ExportError(UltrError, RuntimeError):
    """An exported ranker scores otherwise than the model it was made from."""


class PluginError(UltrError, TypeError):
    """A method, click model or the like from outside the package cannot be used."""


class MissingExtraError(UltrError, ImportError):
    """The optional dependencies of a part of ultr are not installed."""


def how_to_install(*extras: str) -> str:
    """The command that brings extras; a checkout is named, because no public index has ultr.

    >>> how_to_install("trees", "xgboost")
    "pip install '.[trees,xgboost]' in a checkout of ultr"
    """
    return f"pip install '.[{','.join(extras)}]' in a checkout of ultr"


def imported(library: str, extra: str, *, why: str) -> Any:
    """A library that an extra brings; where it is missing, a `MissingExtraError` says why it is needed."""
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingExtraError(f"{why}; install it with: {how_to_install(extra)}") from error


class UltrWarning(UserWarning):
    """A result is right, but not what one might take it for."""


class SeenDataWarning(UltrWarning):
    """Rankers are measured on data that they were, or may have been, trained on."""
