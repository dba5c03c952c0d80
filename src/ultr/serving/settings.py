"""Settings of the service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from ultr import checks
from ultr.errors import DataError, OptionError
from ultr.serving.exploration import Exploration
from ultr.serving.features import MISSING, Missing
from ultr.serving.limits import RequestLimits

TOKEN_VARIABLE = "ULTR_TOKEN"
SHORTEST_TOKEN = 16
MOST_THREADS = 1024
LEAST_GIGABYTES = 0.01
LOG_FORMATS = ("parquet", "jsonl")
LOG_LEVELS = ("debug", "info", "warning")


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Everything but the model."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free one, which the log names."""
    token: str | None = field(default=None, repr=False)
    """Token that clients must send; without it everybody is let in."""
    open_without_token: bool = False
    """Let other machines connect though there is no token."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names that a request may call the service by."""
    threads: int = 0
    """Requests that are scored side by side; 0 takes one per core."""
    missing: Missing = "as-trained"
    """Features that may be missing: those that were in training (as null), none (`refuse`), or all (`fill`)."""
    watch_seconds: float = 1.0
    """Seconds between looks at the model file; 0 looks only when asked by SIGHUP."""
    drain_seconds: float = 0.0
    """From the signal to stop to the end of accepting; meanwhile `/ready` says no, so that a balancer turns away."""
    shutdown_seconds: float = 30.0
    """For requests that have begun, after the signal to stop."""
    log_level: str = "info"
    log_to: Path | None = None
    """Folder for what was shown and what users did with it; None keeps nothing."""
    log_gigabytes: float = 10.0
    """Size of that folder, beyond which the oldest files are removed."""
    log_format: str = "parquet"
    """Format of its files once their hour is over: parquet or jsonl."""
    shown: int = 10
    """Documents that a page shows, for queries that do not say."""
    explore: Exploration = field(default_factory=Exploration)
    """The random changes of shown lists."""
    limits: RequestLimits = field(default_factory=RequestLimits)

    def __post_init__(self) -> None:
        if not 0 <= checks.integer("port", self.port, at_least=0) < 2**16:
            raise OptionError(f"port must be below 65536, got {self.port}")
        if checks.integer("threads", self.threads, at_least=0) > MOST_THREADS:
            raise OptionError(f"threads must be at most {MOST_THREADS}, got {self.threads}")
        checks.one_of("missing", self.missing, MISSING)
        checks.one_of("log level", self.log_level, LOG_LEVELS)
        checks.not_negative("watch_seconds", self.watch_seconds)
        checks.not_negative("drain_seconds", self.drain_seconds)
        checks.positive("shutdown_seconds", self.shutdown_seconds)
        if checks.positive("log_gigabytes", self.log_gigabytes) < LEAST_GIGABYTES:
            raise OptionError(f"log_gigabytes must be at least {LEAST_GIGABYTES}, got {self.log_gigabytes}")
        checks.one_of("log format", self.log_format, LOG_FORMATS)
        checks.integer("shown", self.shown, at_least=1)
        if self.explore.active and self.log_to is None:
            raise OptionError("--explore needs --log-to FOLDER: what is explored must be logged to be of use")
        token = self.token
        if token is not None and (
            len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token
        ):
            raise OptionError(
                f"the token must have at least {SHORTEST_TOKEN} characters, plain and without spaces; "
                "make one with `openssl rand -hex 32`"
            )

    @property
    def cores(self) -> int:
        """Number of requests that are scored side by side."""
        mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return self.threads or mine or 1

    @property
    def hosts(self) -> frozenset[str] | None:
        """Names that requests may call the service by; None for all.

        Without a token, a page of any site can have its own name resolved to this machine and then ask as if it came
        from here; the browser tells the name that it was opened by.
        """
        if not self.allowed_hosts and (self.token is not None or self.open_without_token):
            return None
        names = ("localhost", "127.0.0.1", "::1", self.host, *self.allowed_hosts)
        return frozenset(name.lower().strip("[]") for name in names)

    def check_exposure(self, address: str) -> None:
        """Raise an `OptionError` if other machines could connect without a token and nobody said that they may."""
        if self.token is None and not self.open_without_token and not ip_address(address.partition("%")[0]).is_loopback:
            raise OptionError(
                f"{self.host} can be reached from other machines; set {TOKEN_VARIABLE} or give --token-file, "
                "or say --no-token if anybody may rank"
            )


def read_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """The token from a file, or else from the environment; None if there is neither."""
    if file is None:
        token = environment.get(TOKEN_VARIABLE)
        return None if token is None else token.strip()
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DataError(f"cannot read the token in {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file} is not a text; write a token into it, such as that of `openssl rand -hex 32`"
        ) from error
