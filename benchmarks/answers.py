"""Answers of kgkit's commands, each asked for once and kept in the home."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from kgkit.home import Home

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
