from __future__ import annotations

import os
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
        losses, sums = stage.losses(model.outputs(part.documents, stage.uses), part)
        assert (sums is None) == (stage.update is None)
        (losses.mean() * (len(part.mask) / len(batch.mask))).backward()
        found = [p.grad for p in model.parameters() if p.grad is not None]
        return torch.cat([each.flatten() for each in (found if sums is None else [*found, sums])])

    for stage in estimator.stages(model.objective, lists, 1):
        if stage.begin is not None:
            stage.begin(model.by_name)
        parts = [gradient_and_sums(stage, lists.batch(np.arange(50), share=share)) for share in shares]
        assert torch.stack(parts).sum(dim=0) == pytest.approx(gradient_and_sums(stage, batch), rel=1e-3, abs=1e-5)


def _torchrun(folder: Path, *arguments: object, restarts: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [f"--max-restarts={restarts}", "-m", "--", "ultr", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pair_log: ClickLog) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    pair_log.save(folder / "log")
    return folder


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("dla", ("--steps", 30, *OPTIONS)),
        ("regression-em", ("--steps", 30, *OPTIONS)),
        ("pair-debias", ("--set", "recipe=paper", "--steps", 30, *OPTIONS)),
        ("click", ("--relevance", "trees", "--steps", 5)),
        ("lightgbm", ("--steps", 5, "--set", "sessions=500")),
    ],
)
def test_two_processes_train_the_model_of_one(
    method: str, options: tuple[object, ...], folder: Path, pair_log: ClickLog, small: Splits
) -> None:
    one, two = folder / f"{method}-one", folder / f"{method}-two"
    train = ("train", method, "--log", folder / "log", *options)
    ultr(*train, "--out", one)
    process = _torchrun(folder, *train, "--out", two)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out.count("a ranker by the method") == 1
    alone, together = load(one), load(two)
    # Not weight by weight: a list-wise loss does not see a constant that is added to all scores, so Adam moves it by
    # the noise of the last digit.
    assert _centred(together, small.test) == pytest.approx(_centred(alone, small.test), abs=2e-3)
    assert together.click_shares(pair_log) == pytest.approx(alone.click_shares(pair_log), abs=1e-3)
    assert not list(folder.glob(".*checkpoint"))


def _centred(ranker: Ranker, lists: JudgedLists) -> Doubles:
    scores = ranker.score(lists.features, lists.offsets).astype(np.float64)
    means = np.add.reduceat(scores, lists.offsets[:-1]) / np.diff(lists.offsets)
    centred: Doubles = scores - np.repeat(means, np.diff(lists.offsets))
    return centred


def test_after_a_worker_is_killed_all_go_on_from_the_checkpoint(folder: Path) -> None:
    train = ("train", "vectorization", "--log", folder / "log", "--steps", 600, *OPTIONS)
    whole = _torchrun(folder, *train, "--out", folder / "whole")
    whole.communicate(timeout=300)
    assert whole.returncode == 0
    process = _torchrun(folder, *train, "--out", folder / "killed", restarts=1)
    checkpoint = folder / ".killed.checkpoint"
    end = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < end:
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "going on from step" in err
    a, b = (load_file(folder / name / "weights.safetensors") for name in ("whole", "killed"))
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_processes_that_see_different_logs_stop(folder: Path) -> None:
    (folder / "second").mkdir()
    script = folder / "second" / "start.py"
    script.write_text(
        "import os, sys\nfrom ultr.cli import main\n"
        f"log = '{folder}/log' if os.environ['RANK'] == '0' else '{folder}/other'\n"
        f"sys.argv = ['ultr', 'train', 'dla', '--log', log, '--steps', '20', '--out', '{folder}/torn']\nmain()\n"
    )
    log = ClickLog.load(folder / "log")
    replace(log, features=log.features[::-1]).save(folder / "other")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode != 0
    assert done.stderr.count("ultr: the processes start from different logs, options or checkpoints; start all") == 1
    assert not (folder / "torn").exists()


def test_of_two_processes_one_says_what_is_wrong(folder: Path) -> None:
    process = _torchrun(folder, "train", "dla", "--log", folder / "absent", "--out", folder / "none")
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert err.count("ultr: ") == 1
    assert not (folder / "none").exists()
