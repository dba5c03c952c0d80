"""The whole way of an experiment: spec, runs, findings, folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from ultr import checks
from ultr.errors import OptionError, how_to_install
from ultr.experiments.analyses import ANALYSES
from ultr.experiments.experiment import Experiment
from ultr.experiments.findings import write_findings
from ultr.experiments.spec import WITHOUT_RUNS, read_spec
from ultr.experiments.store import code_version
from ultr.experiments.workers import cores
from ultr.files import check_new_folder
from ultr.pages import Section
from ultr.version import __version__

RUNS = "runs"


def reproduce(
    name: str,
    *,
    out: str | Path,
    data: str | None = None,
    quick: bool = False,
    as_published: bool = False,
    seeds: Sequence[int] | None = None,
    changes: Sequence[str] = (),
    workers: int | None = None,
    say: Callable[[str], object] = str,
) -> tuple[Section, Path]:
    """Run an experiment and give what it found and the folder it was written to.

    Args:
        name: An experiment that comes with the package, or a TOML file.
        out: Finished runs are kept in `out/runs`, findings are written beside it.
        data: The data set, as `NAME=FOLDER`; by default the first one of the spec.
        quick: As the table [quick] of the spec shortens it.
        as_published: By the protocol of the paper, in the place of ours.
        seeds: In place of the spec's.
        changes: Lines of TOML that go over what the spec has, such as `simulation.impressions = 100_000`.
        workers: How many runs are done side by side; by default one for each core.
        say: Is told what happens.

    """
    import matplotlib  # noqa: F401 (if it is missing, better now than after hours of training)

    spec = read_spec(name, quick=quick, as_published=as_published, changes=changes)
    if seeds is not None:
        spec = spec.with_seeds(seeds)
    form = "quick" if quick else "as-published" if as_published else None
    experiment = Experiment.of(spec, data, Path(out) / RUNS)
    folder = Path(out) / _folder_name(Path(name).stem, experiment, data, changes, form)
    check_new_folder(folder, overwrite=True)
    for label in experiment.left_out():
        say(f"{label} is left out, because its library is not installed: {how_to_install('trees', 'xgboost')}")
    if spec.analysis not in WITHOUT_RUNS:
        if not experiment.contenders():
            raise OptionError(f"nothing is left to run of {name}; {how_to_install('trees', 'xgboost')}")
        count = cores() if workers is None else checks.integer("workers", workers, at_least=1)
        experiment.run(workers=count, say=say)
    found = ANALYSES[spec.analysis](experiment)
    write_findings(
        found,
        folder,
        command_line(name, data, quick=quick, as_published=as_published, seeds=seeds, changes=changes),
        {
            "experiment": Path(name).stem,
            "spec": spec.model_dump(mode="json"),
            "data": [source.fingerprint() for source in experiment.sources],
            "code": code_version(),
            "version": __version__,
        },
    )
    return found, folder


def command_line(
    name: str, data: str | None, *, quick: bool, as_published: bool, seeds: Sequence[int] | None, changes: Sequence[str]
) -> str:
    """The command line that gives the same; the folders of this machine are left out."""
    path = Path(name)
    if path.is_absolute():
        path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(path.name)
    words = ["ultr", "reproduce", str(path)]
    if data is not None:
        label, _, value = data.partition("=")
        words += ["--data", data if not value or value.isdecimal() else f"{label}=FOLDER"]
    words += ["--quick"] * quick + ["--as-published"] * as_published
    words += [] if seeds is None else ["--seeds", ",".join(map(str, seeds))]
    return shlex.join([*words, *(word for change in changes for word in ("--set", change))])


def _folder_name(
    experiment_name: str, experiment: Experiment, data: str | None, changes: Sequence[str], form: str | None
) -> str:
    """Name of the folder; it says what is not as the spec has it."""
    source = experiment.source
    if experiment_name == RUNS:
        raise OptionError(f"an experiment cannot be called {RUNS}, which is the folder of the runs; rename the file")
    parts = [experiment_name]
    if source.folder is not None:
        parts.append(source.name)
    elif data is not None:
        parts.append(f"{source.name}-{source.queries}")
    parts += [word for change in changes for word in re.findall("[A-Za-z0-9]+", change)]
    return "-".join([*parts, form] if form else parts)
