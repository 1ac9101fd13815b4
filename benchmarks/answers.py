"""Models and answers of kgkit's commands, each trained or asked for once and kept in the home."""

import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final, Generic

from kgkit.home import Home
from kgkit.models.folder import find_trained, has_model
from kgkit.models.kinds import Kind
from kgkit.models.manifest import MANIFEST, ManifestType

COMMAND: Final = (sys.executable, "-P", "-c", "from kgkit.commands import main; main()")
"""What runs kgkit in a process of its own."""


def ask_once(home: Home, name: str, identity: bytes, words: Sequence[str], *further: str) -> dict[str, Any]:
    """Return what a command says as JSON; what it said once is kept.

    Args:
        home: home that it is run in, and its answer kept in, below `asked`.
        name: name of what is asked, which the file begins with.
        identity: all that the answer depends on beside the words.
        words: words of the command line.
        further: more of them, which the identity tells already.
    """
    key = hashlib.blake2b(identity + repr(tuple(words)).encode(), digest_size=6).hexdigest()
    path = home.path / "asked" / f"{name}-{key}.json"
    if not path.exists():
        done = subprocess.run(
            [*COMMAND, *words, *further, "--home", str(home.path), "--json", "--quiet"],
            check=True,
            stdout=subprocess.PIPE,
        )
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(done.stdout)
    answer: dict[str, Any] = json.loads(path.read_bytes())
    return answer


class Runs(Generic[ManifestType]):
    """Runs commands of kgkit in a home, those that have not been run yet.

    Args:
        home: home of the models, and of what is built for them.
        kind: kind of the models.
    """

    def __init__(self, home: Home, kind: Kind[ManifestType]) -> None:
        self.home, self.kind = home, kind

    def train(self, name: str, *words: str) -> None:
        """Train a model, unless it is there.

        Raises:
            SystemExit: if one of that name was trained in another way.
        """
        made = self.manifest(name)
        if made is None:
            subprocess.run(
                [*COMMAND, "train", self.kind.name, "--name", name, *words, "--home", str(self.home.path)],
                check=True, stdout=sys.stderr,
            )  # fmt: skip
        elif strange := set(words) - set(shlex.split(made.command)):
            raise SystemExit(f"{name} was trained without {' '.join(strange)}: {made.command}")

    def ask(self, name: str, *words: str) -> dict[str, Any]:
        """Return what a command says of a model as JSON; what it said once is kept."""
        made = (find_trained(self.home, name) / MANIFEST).read_bytes()
        return ask_once(self.home, name, made, words, "--model", name)

    def manifest(self, name: str) -> ManifestType | None:
        """Return the manifest of a model, if it is there."""
        return self.kind.read(find_trained(self.home, name)) if has_model(self.home, name) else None
