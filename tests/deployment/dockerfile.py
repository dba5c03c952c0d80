"""A Dockerfile as its instructions, and its steps in a plain folder that stands for the root of the image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PATHS = ("/build", "/opt/ultr", "/model", "/run/secrets")
"""The folders of the image that are there only in the image."""


@dataclass(frozen=True)
class Instruction:
    """A line of a Dockerfile with its continuations."""

    name: str
    rest: str

    def command(self) -> list[str]:
        """The words of a command in the form of a JSON array."""
        words: list[str] = json.loads(self.rest[self.rest.index("[") :])
        return words


def instructions(path: Path) -> list[Instruction]:
    """The instructions of a Dockerfile in order."""
    lines = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)).splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]


@dataclass(frozen=True)
class PlainImage:
    """A folder that stands for the root of the image."""

    root: Path
    context: Path

    def inside(self, text: str) -> str:
        """A text with the paths of the image as those of the folder."""
        for path in PATHS:
            text = re.sub(rf"(?<![\w.]){path}\b", f"{self.root}{path}", text)
        return text

    def build(self, steps: Sequence[Instruction], environment: dict[str, str]) -> None:
        """Run the steps that copy and install; raise `CalledProcessError` if one fails."""
        folder = self.root
        for step in steps:
            match step.name:
                case "WORKDIR":
                    folder = Path(self.inside(step.rest))
                    folder.mkdir(parents=True)
                case "COPY" if not step.rest.startswith("--from"):
                    *sources, target = step.rest.split()
                    for source in sources:
                        self._copy(self.context / source, folder / target)
                case "RUN":
                    command = ["sh", "-c", self.inside(step.rest)]
                    subprocess.run(command, cwd=folder, check=True, env=environment, capture_output=True, text=True)

    def _copy(self, source: Path, target: Path) -> None:
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, target)

    def environment(self, steps: Sequence[Instruction]) -> dict[str, str]:
        """The variables that the image sets, and the path of this machine behind its own."""
        pairs = [pair.partition("=") for step in steps if step.name == "ENV" for pair in step.rest.split()]
        found = {name: self.inside(value).replace("$PATH", os.environ["PATH"]) for name, _, value in pairs}
        return {name: value for name, value in found.items() if not name.startswith("PIP_")}
