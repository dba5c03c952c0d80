"""The image of the service: what it is made of, and that it answers without root and without writing anything."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from tests.deployment.dockerfile import PlainImage, instructions
from tests.serving.ranker_file import write_ranker

PROJECT = Path(__file__).parents[2]
STEPS = instructions(PROJECT / "Dockerfile")
TOKEN = "0123456789abcdef0123456789abcdef"
PATIENCE = 60
"""Seconds for the service to answer."""
REQUEST = json.dumps({"queries": [{"candidates": [{"features": [1, 2, 3]}, {"features": [3, 2, 1]}]}]}).encode()


def _only(name: str) -> list[str]:
    return [step.rest for step in STEPS if step.name == name]


def _succeeds(command: list[str], environment: dict[str, str] | None = None) -> bool:
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, check=False).returncode == 0


def _has_docker() -> bool:
    return shutil.which("docker") is not None and _succeeds(["docker", "info"])


def test_it_installs_the_service_alone_by_the_tested_versions_and_not_as_root() -> None:
    (install,) = [step for step in _only("RUN") if "pip install" in step]
    assert "--constraint constraints.txt '.[serve]'" in install
    (user,) = _only("USER")
    assert all(int(number) > 0 for number in user.split(":"))
    # No instruction but what the image starts with comes behind the user, so that nothing is made as one who may not.
    assert STEPS.index(next(step for step in STEPS if step.name == "USER")) > max(
        number for number, step in enumerate(STEPS) if step.name in ("RUN", "COPY")
    )


def test_what_is_copied_is_not_ignored_and_all_else_is() -> None:
    kept = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {word for rest in _only("COPY") if not rest.startswith("--from") for word in rest.split()[:-1]}
    assert copied == kept
    assert "*" in (PROJECT / ".dockerignore").read_text().splitlines()
    assert all((PROJECT / each).exists() for each in copied)


def _line_of_the_page(name: str, root: Path, port: int) -> str:
    """The command of the page that runs the image, with other names, paths and port."""
    page = (PROJECT / "docs" / "deploy.md").read_text()
    found = re.search(r"^docker run .*?[^\\]$", page, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    line = found[0]
    changes = {
        "--name ranker": f"--name {name}",
        '"$PWD/models:': f'"{root}/model:',
        '"$PWD/token:': f'"{root}/run/secrets/token:',
        "127.0.0.1:8000:": f"127.0.0.1:{port}:",
    }
    for before, after in changes.items():
        assert before in line
        line = line.replace(before, after)
    options, command = line.split("\n  ultr \\\n")
    return f"{options}\n  {name} \\\n{command}"


def test_the_page_on_deployment_closes_what_can_be_closed() -> None:
    words = shlex.split(_line_of_the_page("image", Path("/somewhere"), 1).replace("\\\n", ""))
    assert {"--read-only", "--tmpfs", "--memory", "--cap-drop"} <= set(words)
    assert "/somewhere/model:/model:ro" in words
    assert "/somewhere/run/secrets/token:/run/secrets/token:ro" in words
    assert words[words.index("ultr") - 1] == "image"


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """A folder that others than its owner may read, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        for name in ("model", "run/secrets"):
            (path / name).mkdir(parents=True)
        write_ranker(path / "model" / "model.onnx", form="documents")
        (path / "run/secrets/token").write_text(TOKEN)
        yield path


@pytest.fixture(scope="module")
def image(root: Path) -> PlainImage:
    """The steps of the Dockerfile, run here; skipped where no packages can be had."""
    if _has_docker():
        pytest.skip("docker is here, and builds the image itself")
    plain = PlainImage(root, PROJECT)
    # Bytecode and progress cost time and prove nothing.
    environment = dict(os.environ) | {"PIP_NO_COMPILE": "1", "PIP_PROGRESS_BAR": "off", "PIP_RETRIES": "0"}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    try:
        plain.build(STEPS, environment)
    except subprocess.CalledProcessError as error:
        if re.search(r"No matching distribution|ConnectionError|NewConnectionError|ProxyError|SSLError", error.stderr):
            pytest.skip(f"the packages cannot be had here: {error.stderr.strip().splitlines()[-1]}")
        raise AssertionError(error.stderr) from error
    return plain


def test_without_docker_its_steps_make_a_service_that_is_healthy_and_ranks(image: PlainImage) -> None:
    environment, port = image.environment(STEPS), str(_free_port())
    missing = subprocess.run(
        ["python", "-c", "import torch"], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert "No module named 'torch'" in missing.stderr
    start = [image.inside(word) for word in STEPS[-1].command()]
    check = [word.replace("8000", port) for word in next(s for s in STEPS if s.name == "HEALTHCHECK").command()]
    before = _files(image.root)
    service = subprocess.Popen([*start, "--port", port], env=environment, cwd="/", stderr=subprocess.PIPE, **_as_user())
    try:
        _wait_until_healthy(lambda: service.poll() is not None or _succeeds(check, environment))
        assert service.poll() is None, "the service has ended"
        assert _ranked(f"http://127.0.0.1:{port}")
    finally:
        service.terminate()
        _, told = service.communicate(timeout=30)
    assert service.returncode == 0, told.decode()
    assert _files(image.root) == before, "the root file system is read-only in the image"
    assert not _succeeds(check, environment), "the health check says yes to a service that has stopped"


def _as_user() -> dict[str, Any]:
    """The user of the image, if this one may become it and it may run the Python of this machine."""
    user, group = map(int, _only("USER")[0].split(":"))
    python = Path(sys.executable).resolve()
    reachable = all(parent.stat().st_mode & 0o001 for parent in python.parents)
    return {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 and reachable else {}


def _files(folder: Path) -> set[tuple[Path, float]]:
    return {(path, path.lstat().st_mtime) for path in folder.rglob("*")}


def test_with_docker_the_image_is_built_and_answers_with_a_read_only_root(root: Path) -> None:
    if not _has_docker():
        pytest.skip("docker is not here; the steps of the Dockerfile are run without it")
    name = f"ultr-test-{os.getpid()}"
    subprocess.run(["docker", "build", "--tag", name, str(PROJECT)], check=True, capture_output=True)
    port = _free_port()
    subprocess.run(_line_of_the_page(name, root, port), shell=True, check=True, capture_output=True)
    try:
        state = ["docker", "inspect", "--format", "{{.State.Health.Status}}", name]
        _wait_until_healthy(lambda: subprocess.run(state, capture_output=True, text=True).stdout.strip() == "healthy")
        assert _ranked(f"http://127.0.0.1:{port}")
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
        subprocess.run(["docker", "rmi", name], capture_output=True, check=False)


def _wait_until_healthy(is_healthy: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_healthy():
        assert time.monotonic() < end, "the health check never answered"
        time.sleep(0.1)


def _ranked(address: str) -> bool:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with pytest.raises(URLError, match="401"):
        urlopen(Request(f"{address}/rank", REQUEST, {"Content-Type": "application/json"}), timeout=10)
    with urlopen(Request(f"{address}/rank", REQUEST, headers), timeout=10) as answer:
        return len(json.load(answer)["queries"][0]["ranking"]) == 2


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
