"""Runs side by side: one process for each core, one thread in each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from ultr.errors import TrainingError, UltrError
from ultr.experiments.progress_table import ProgressTable
from ultr.experiments.run import Run, execute
from ultr.experiments.store import Store, code_version

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def cores() -> int:
    """Number of runs that fit side by side."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(runs: Sequence[Run], store: Store, progress: ProgressTable, *, workers: int) -> None:
    """Finish the runs, `workers` at a time, in their order.

    Every run has one thread, so that its weights do not depend on how many run beside it.
    """
    waiting = list(reversed(runs))
    running: dict[Future[None], Run] = {}
    with _one_thread(), progress, _pool(min(workers, max(1, len(runs)))) as pool:
        while waiting or running:
            try:
                while waiting and len(running) < workers:
                    running[pool.submit(_finish, waiting[-1], store, code_version())] = waiting[-1]
                    progress.started(waiting.pop())
                done, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    _result(future, running[future])
            except BrokenProcessPool:
                names = " or ".join(map(str, running.values()))
                raise TrainingError(
                    f"a process was killed, perhaps for want of memory, during {names}; "
                    "start the same command again, with fewer --workers if need be"
                ) from None
            for future in done:
                outcome = store.read(running.pop(future))
                assert outcome is not None
                progress.finished(outcome)
            progress.show()


def _result(future: Future[None], run: Run) -> None:
    try:
        future.result()
    except UltrError as error:
        raise type(error)(f"{run}: {error}") from error


def _finish(run: Run, store: Store, code: str) -> None:
    if code_version() != code:
        raise TrainingError("the code of ultr changed while the experiment ran; start the same command again")
    store.write(run, execute(run, checkpoint=store.checkpoint(run)))


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end with this block, however it ends."""
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare, initargs=(os.getpid(),)
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
                child.join()


def _prepare(parent: int) -> None:
    """Make this process one that computes with one thread and does not outlive its parent."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    torch.set_num_threads(1)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for the libraries that read their number from the environment when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
