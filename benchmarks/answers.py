"""Results of kgkit's commands: what has been trained or evaluated before is read from a cache."""

import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Generic

from kgkit.catalog.runs import sha256_of
from kgkit.encoder.finding import find_model
from kgkit.encoder.folder import fingerprint
from kgkit.errors import NotThere
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.models.folder import find_trained, has_model
from kgkit.models.kinds import Kind
from kgkit.models.manifest import MANIFEST, ManifestType
from kgkit.models.publishing import remove_model

COMMAND: Final = (sys.executable, "-P", "-c", "from kgkit.commands import main; main()")
"""What runs kgkit in a process of its own."""


def run_once(
    home: Home, name: str, identity: bytes, arguments: Sequence[str], *further: str
) -> dict[str, Any]:
    """Return the JSON that a command writes; it is run only if the cache does not have it.

    Args:
        home: home of the command; the cache is its folder `asked`.
        name: what the name of the cached file begins with.
        identity: all that the result depends on beside the arguments.
        arguments: arguments of the command line.
        further: more of them, which *identity* has already.
    """
    command = [*COMMAND, *arguments, *further, "--home", str(home.path), "--json", "--quiet"]
    return compute_once(
        home, name, identity + repr(tuple(arguments)).encode(),
        lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout,
    )  # fmt: skip


def compute_once(home: Home, name: str, identity: bytes, compute: Callable[[], bytes]) -> dict[str, Any]:
    """Return the JSON that a function computes; it is called only if the cache does not have it.

    Args:
        home: home whose folder `asked` is the cache.
        name: what the name of the cached file begins with.
        identity: all that the result depends on.
        compute: the function.
    """
    key = hashlib.blake2b(identity, digest_size=6).hexdigest()
    path = home.path / "asked" / f"{name}-{key}.json"
    if not path.exists():
        content = compute()
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    result: dict[str, Any] = json.loads(path.read_bytes())
    return result


def read_by(home: Home, options: Sequence[str]) -> list[str]:
    """Return the digests of models, and builds of knowledge bases, in options of `kgkit train`."""
    identities = []
    for option, value in pairwise(options):
        if has_model(home, value):
            identities.append(sha256_of(find_trained(home, value) / MANIFEST))
        elif option == "--kb":
            with suppress(NotThere), open_kb(value, home.path) as kb:  # the training says so
                identities.append(kb.build)
        elif option == "--encoder":
            with suppress(NotThere):
                identities.append(fingerprint(find_model(value)))
    return identities


def predictions_of(path: Path, home: Path, training: Sequence[str], test: Path) -> dict[str, str]:
    """Return the predictions of a model by id; it is trained only if they are not in *path*.

    Args:
        path: file of the predictions, whose name without its end is that of the model.
        home: home of the model.
        training: arguments of `kgkit train`.
        test: file of the examples.
    """
    if not path.exists():
        train_and_predict(path, home, training, test)
    lines = path.read_text(encoding="utf-8").splitlines()
    return {id: label for id, _, label in (line.partition("\t") for line in lines)}


def train_and_predict(path: Path, home: Path, training: Sequence[str], test: Path) -> None:
    """Train a model, write its predictions, and remove it; arguments as for `predictions_of`."""
    for arguments in (
        ["train", *training, "--name", path.stem],
        ["evaluate", "task", "--model", path.stem, "--data", str(test), "--predictions", str(path)],
    ):
        command = [*COMMAND, *arguments, "--home", str(home), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    remove_model(Home(home), path.stem)
    print(path.name, file=sys.stderr, flush=True)


class Runs(Generic[ManifestType]):
    """Trains and evaluates models of a home, each once.

    Args:
        home: home of the models.
        kind: kind of the models.
    """

    def __init__(self, home: Home, kind: Kind[ManifestType]) -> None:
        self.home, self.kind = home, kind

    def train(self, name: str, *arguments: str) -> None:
        """Train a model, unless the home has it.

        Raises:
            SystemExit: if the model of that name was trained with other arguments.
        """
        manifest = self.manifest(name)
        if manifest is None:
            subprocess.run(
                [
                    *COMMAND, "train", self.kind.name, "--name", name, *arguments,
                    "--home", str(self.home.path),
                ],
                check=True, stdout=sys.stderr,
            )  # fmt: skip
        elif missing := set(arguments) - set(shlex.split(manifest.command)):
            raise SystemExit(f"{name} was trained without {' '.join(missing)}: {manifest.command}")

    def evaluate(self, name: str, task: str, *arguments: str) -> dict[str, Any]:
        """Return the JSON that `kgkit evaluate` writes of a model; it is run only once."""
        identity = self.identity(name)
        return run_once(self.home, name, identity, ("evaluate", task, *arguments), "--model", name)

    def identity(self, name: str) -> bytes:
        """Return what the scores of a model depend on: its manifest."""
        return (find_trained(self.home, name) / MANIFEST).read_bytes()

    def manifest(self, name: str) -> ManifestType | None:
        """Return the manifest of a model, if it is there."""
        return self.kind.read(find_trained(self.home, name)) if has_model(self.home, name) else None
