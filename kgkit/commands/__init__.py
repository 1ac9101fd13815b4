"""The command line: one file per verb, and what they share.

app        the tree of commands; errors become exit codes
options    the options and look-ups that several verbs have
output     standard output: tables, JSON, files that appear whole
messages   standard error: messages and progress
"""

import gc
import os
import sys
from typing import Final

_FIRST_COLLECTION: Final = 100_000
"""Containers after which garbage in cycles is looked for the first time: more than imports make."""


def main() -> None:
    """Run `kgkit` with the arguments of this process, and end it."""
    open_standard_streams()
    _delay_collection()
    try:
        # Here: what is interrupted while it starts should say no more than what is interrupted later.
        from kgkit.commands.app import app

        app(prog_name="kgkit")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:
        gc.freeze()  # the process ends: nothing is to be looked through once more


def _delay_collection() -> None:
    """Let the first collection of garbage come late, and those behind it as usual."""
    usual = gc.get_threshold()

    def restore(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(restore)
        gc.set_threshold(*usual)

    gc.callbacks.append(restore)
    gc.set_threshold(_FIRST_COLLECTION)


def open_standard_streams() -> None:
    """Open those standard streams that the caller has closed (`<&-`), where Python has None.

    Standard input is empty then, and results cannot be written to standard output: opened for reading, it
    refuses them. Nor is the next file that is opened taken for the stream, whose number it would have.
    """
    for name, access, mode in (
        ("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")
    ):  # fmt: skip
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))
