from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from tests.cli.console import ultr
from tests.relevance.documents import inputs_of

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.splits import Splits
from ultr.errors import OptionError
from ultr.locks import alone
from ultr.methods import load, methods_with
from ultr.methods.estimator import Estimator
from ultr.methods.factors import factors_of
from ultr.methods.ranker import Ranker
from ultr.relevance import MLP
from ultr.train.lists import Batch
from ultr.train.process_group import ProcessGroup
from ultr.train.stage import Stage

SOURCE = Path(__file__).parents[2] / "src"
WITH_NETWORKS = methods_with(MLP)
OPTIONS = ("--set", "hidden=8", "--set", "evaluate_every=10", "--set", "batch_size=51")


@given(size=st.integers(1, 9), lists=st.integers(9, 40))
def test_every_list_of_a_batch_is_the_share_of_one_process(size: int, lists: int) -> None:
    shares = np.concatenate([ProcessGroup(rank, size).share(lists) for rank in range(size)])
    assert sorted(shares.tolist()) == list(range(lists))


def test_a_batch_that_cannot_be_shared_is_refused() -> None:
    with pytest.raises(OptionError, match="cannot share a batch of 2"):
        ProcessGroup(0, 3).share(2)


def test_a_process_alone_agrees_with_itself() -> None:
    group = ProcessGroup()
    group.check_same("anything")
    assert (group.broadcast(0.25), group.broadcast(None), group.leads) == (0.25, None, True)


@pytest.mark.parametrize("method", WITH_NETWORKS.values(), ids=WITH_NETWORKS)
def test_the_gradients_and_sums_of_the_shares_add_up_to_those_of_the_batch(
    method: type[Estimator], small: Splits, pair_log: ClickLog
) -> None:
    estimator = method(relevance=MLP(hidden=(8,)))
    data = small.train if method.learns_from is JudgedLists else pair_log
    lists = estimator.training_lists(data, inputs_of(data.features))
    model = estimator.build(len(data.feature_names), factors_of(data), seed=0)
    batch, shares = lists.batch(np.arange(50)), [ProcessGroup(rank, 3).share(50) for rank in range(3)]

    def gradient_and_sums(stage: Stage, part: Batch) -> torch.Tensor:
        model.zero_grad()
        losses, sums = model.losses(stage, part)
        assert (sums is None) == (stage.update is None)
        (losses.mean() * (len(part.mask) / len(batch.mask))).backward()
        found = [p.grad for p in model.parameters() if p.grad is not None]
        return torch.cat([each.flatten() for each in (found if sums is None else [*found, sums])])

    for stage in estimator.stages(model.objective, lists, 1):
        if stage.begin is not None:
            stage.begin(model.by_name)
        parts = [gradient_and_sums(stage, lists.batch(np.arange(50), share=share)) for share in shares]
        assert torch.stack(parts).sum(dim=0) == pytest.approx(gradient_and_sums(stage, batch), rel=1e-3, abs=1e-5)


COMMANDS = """
import json, os, sys, traceback
from contextlib import redirect_stderr, redirect_stdout
import torch
from ultr.cli import main

rank, code = os.environ["RANK"], None
for number, (name, arguments) in enumerate(json.loads(sys.argv[1]).items()):
    # Each command has a group of its own, as after a restart: nothing that the last one said must be believed.
    os.environ["TORCHELASTIC_RESTART_COUNT"] = str(number)
    sys.argv = ["ultr", *(argument.replace("RANK", rank) for argument in arguments)]
    with open(f"{name}.{rank}.out", "w") as out, open(f"{name}.{rank}.err", "w") as err:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                traceback.print_exc()
                code = 1
        print(f"exit code {code}", file=err)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
sys.exit(code)
"""
"""Several commands in the same processes, since torch takes seconds to start."""
TRAINED = {
    "dla": ("dla", "--steps", 30, *OPTIONS),
    "regression-em": ("regression-em", "--steps", 30, *OPTIONS),
    "pair-debias": ("pair-debias", "--set", "recipe=paper", "--steps", 30, *OPTIONS),
    "trees": ("click", "--relevance", "trees", "--steps", 5),
    "lightgbm": ("lightgbm", "--steps", 5, "--set", "sessions=500"),
    "vectorization": ("vectorization", "--steps", 200, *OPTIONS),
}
"""Trainings by method and options."""


def _torchrun(folder: Path, *command: object, restarts: int = 0) -> subprocess.Popen[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*launcher, f"--max-restarts={restarts}", *map(str, command)],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pair_log: ClickLog) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    pair_log.save(folder / "log")
    return folder


@pytest.fixture(scope="module")
def by_two(folder: Path, pair_log: ClickLog) -> Path:
    """The folder in which two processes ran all commands; each left what rank R showed in `NAME.R.out` and `.err`."""
    pair_log.save(folder / "log-of-0")
    replace(pair_log, features=pair_log.features[::-1]).save(folder / "log-of-1")
    commands = {name: (*options, "--log", "log", "--out", f"{name}-two") for name, options in TRAINED.items()}
    commands["torn"] = ("dla", "--log", "log-of-RANK", "--steps", 20, "--out", "torn")
    commands["busy"] = ("dla", "--log", "log", "--out", "busy")
    commands["absent"] = ("dla", "--log", "absent", "--out", "none")
    (folder / "commands.py").write_text(COMMANDS)
    arguments = json.dumps({name: ["train", *map(str, command)] for name, command in commands.items()})
    with alone(folder / ".busy.lock", busy="never"):
        process = _torchrun(folder, "commands.py", arguments)
        _, err = process.communicate(timeout=300)
    assert process.returncode != 0, "the last command fails, and that is to be seen"
    assert all((folder / f"{name}.{rank}.err").exists() for name in commands for rank in (0, 1)), err
    return folder


def _shown(folder: Path, name: str) -> tuple[list[str], str, str]:
    """The exit codes of both processes, and what they wrote to stdout and stderr together."""
    err = "".join((folder / f"{name}.{rank}.err").read_text() for rank in (0, 1))
    out = "".join((folder / f"{name}.{rank}.out").read_text() for rank in (0, 1))
    return re.findall(r"^exit code (.*)$", err, flags=re.MULTILINE), out, err


@pytest.mark.parametrize("name", TRAINED)
def test_two_processes_train_the_model_of_one(name: str, by_two: Path, pair_log: ClickLog, small: Splits) -> None:
    codes, out, err = _shown(by_two, name)
    assert codes == ["0", "0"], err
    assert out.count("a ranker by the method") == 1
    if name == "vectorization":
        return  # 200 steps are too many for the same numbers; these are compared with those of a killed run
    one = by_two / f"{name}-one"
    ultr("train", *TRAINED[name], "--log", by_two / "log", "--out", one)
    alone, together = load(one), load(by_two / f"{name}-two")
    # Not weight by weight: a list-wise loss does not see a constant that is added to all scores, so Adam moves it by
    # the noise of the last digit.
    assert _centred(together, small.test) == pytest.approx(_centred(alone, small.test), abs=2e-3)
    assert together.click_shares(pair_log) == pytest.approx(alone.click_shares(pair_log), abs=1e-3)
    assert not list(by_two.glob(f".{name}*checkpoint"))


def test_all_processes_are_refused_where_another_training_writes(by_two: Path) -> None:
    codes, _, err = _shown(by_two, "busy")
    assert codes == ["2", "2"]
    assert err.count("another training is writing busy") == 1


def _centred(ranker: Ranker, lists: JudgedLists) -> Doubles:
    scores = ranker.score(lists.features, lists.offsets).astype(np.float64)
    means = np.add.reduceat(scores, lists.offsets[:-1]) / np.diff(lists.offsets)
    centred: Doubles = scores - np.repeat(means, np.diff(lists.offsets))
    return centred


def test_after_a_worker_is_killed_all_go_on_from_the_checkpoint(by_two: Path) -> None:
    train = ("train", *TRAINED["vectorization"], "--log", "log", "--out", "killed")
    process = _torchrun(by_two, "-m", "--", "ultr", *train, restarts=1)
    checkpoint = by_two / ".killed.checkpoint"
    end = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < end:
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "going on from step" in err
    a, b = (load_file(by_two / name / "weights.safetensors") for name in ("vectorization-two", "killed"))
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_processes_that_see_different_logs_stop(by_two: Path) -> None:
    codes, _, err = _shown(by_two, "torn")
    assert codes == ["2", "2"], err
    assert err.count("ultr: the processes start from different logs, options or checkpoints; start all") == 1
    assert not (by_two / "torn").exists()


def test_of_two_processes_one_says_what_is_wrong(by_two: Path) -> None:
    codes, _, err = _shown(by_two, "absent")
    assert codes == ["2", "2"], err
    assert err.count("ultr: ") == 1
    assert not (by_two / "none").exists()
