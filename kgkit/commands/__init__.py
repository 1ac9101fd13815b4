"""The command line: one file per verb, and what they share.

app        the tree of commands; errors become exit codes
options    the options and look-ups that several verbs have
output     standard output: tables, JSON, files that appear whole
messages   standard error: messages and progress
"""

import sys


def main() -> None:
    """Run `kgkit` with the arguments of this process, and end it."""
    try:
        # Here: what is interrupted while it starts should say no more than what is interrupted later.
        from kgkit.commands.app import app

        app(prog_name="kgkit")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
