"""What a service offers, to whom, and how much of it at once."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from kgkit.errors import NotThere, UnknownName, UsageError
from kgkit.ranges import check_range

TOKEN_VARIABLE: Final = "KGKIT_TOKEN"
"""The variable that has the bearer token where no file is named."""

METRICS_FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder of the workers' metrics, before prometheus_client is imported."""

_MOST: Final = 3_600.0  # seconds of a request
_LEAST_TOKEN: Final = 16
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_ANY_ADDRESS: Final = ("0.0.0.0", "::", "")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a request may ask for.

    Attributes:
        body_bytes: bytes of a request's body, counted as they arrive.
        characters: code points of all texts of a request together.
        documents: texts of a request.
        mentions: mentions that come with the texts of a request.
        names: names of a request that are reconciled.
        rows: candidates, search results or neighbours in an answer.
        nodes: entities in a neighbourhood.
        queue: requests for links that wait in a process; further ones get 503.
        batch: documents that are linked together.
        lookups: look-ups that run or wait in a process; further ones get 503.
        threads: threads that answer look-ups in a process; half as many answer requests that take long.
        seconds: time in which a request is to arrive and be answered.
    """

    body_bytes: int = 1_000_000
    characters: int = 100_000
    documents: int = 200
    mentions: int = 10_000
    names: int = 1_000
    rows: int = 100
    nodes: int = 200
    queue: int = 128
    batch: int = 32
    lookups: int = 256
    threads: int = 4
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            check_range(self, name, least=1, most=_MOST if name == "seconds" else None)


def read_limits(texts: Sequence[str]) -> Limits:
    """Return limits as a command line has them.

    Args:
        texts: `NAME=NUMBER` each, as `characters=20000`; others stay as they are by default.

    Raises:
        UnknownName: if there is no limit of a name.
        UsageError: if a number is none, or out of range.
    """
    numbers: dict[str, float] = {}
    defaults = Limits()
    for text in texts:
        name, _, number = text.partition("=")
        default = getattr(defaults, name, None)
        if name not in Limits.__dataclass_fields__ or default is None:
            raise UnknownName("limit", name, list(Limits.__dataclass_fields__))
        try:
            numbers[name] = type(default)(number)
        except ValueError:
            kind = "a number" if isinstance(default, float) else "a whole number"
            raise UsageError(f"--limit {text!r}: it is NAME=NUMBER, and {name} is {kind}") from None
    return replace(defaults, **numbers)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Settings of a service.

    Attributes:
        kbs: names of the knowledge bases, and of the models that link to each, the default one first;
            empty: all of the home, with the model `auto`.
        builds: names of the builds that are served, by knowledge base; of others the published one is.
        default_kb: name of the knowledge base of requests that name none; None: the only one, else the
            home's default.
        host: address to listen at.
        port: port to listen at; 0: any that is free.
        workers: number of processes.
        token: bearer token that requests carry; None: none is asked for, which only loopback may do.
        allowed_hosts: further names in the header `Host` of requests.
        allowed_origins: origins (`https://example.org`) of pages that may ask, beside the service's own.
        device: torch device of models that have an encoder.
        limits: limits of requests.

    Raises:
        UsageError: if a value is out of range, or the address is not loopback and there is no token.
    """

    kbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    builds: Mapping[str, str] = field(default_factory=dict)
    default_kb: str | None = None
    host: str = "127.0.0.1"
    port: int = 8077
    workers: int = 1
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    device: str = "auto"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check_range(self, "port", least=0, most=65_535)
        check_range(self, "workers", least=1, most=256)
        if self.token is not None:
            _check_token(self.token)
        elif not is_loopback(self.host):
            raise UsageError(
                f"host {self.host} can be reached from other machines, so a token is needed: "
                f"--token-file FILE, or the variable {TOKEN_VARIABLE}"
            )

    def build_name(self, kb: str) -> str:
        """Return what a knowledge base is opened by: `NAME`, or `NAME@BUILD`."""
        return f"{kb}@{self.builds[kb]}" if kb in self.builds else kb

    @property
    def host_names(self) -> list[str]:
        """Names that the header `Host` may have, without ports; `*` is any.

        Any may come where all addresses are listened at and no names are set: a token is asked for then.
        """
        if self.host in _ANY_ADDRESS and not self.allowed_hosts:
            return ["*"]
        names = (*_LOOPBACK_NAMES, self.host, *self.allowed_hosts)
        return [f"[{name}]" if ":" in name else name for name in names]


def is_loopback(host: str) -> bool:
    """Say whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(file: Path | None) -> str | None:
    """Return the token in a file, else that of the variable `KGKIT_TOKEN`; None if there is neither.

    Raises:
        NotThere: if there is no such file.
        UsageError: if the token is too short, or has characters that a header cannot carry.
    """
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE) or None
    else:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise NotThere(f"no token in {file}: {reason}") from None
    if token is not None:
        _check_token(token)
    return token


def _check_token(token: str) -> None:
    """Refuse a token that is easily guessed, or that a header cannot carry.

    Raises:
        UsageError: if it is one.
    """
    if len(token) < _LEAST_TOKEN:
        raise UsageError(
            f"the token has {len(token)} characters; it has {_LEAST_TOKEN} at least: `openssl rand -hex 32`"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("the token has characters other than letters, digits and signs of ASCII")
