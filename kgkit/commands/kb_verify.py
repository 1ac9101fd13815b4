"""`kgkit kb verify`: is a knowledge base what its manifest says?"""

from contextlib import suppress

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, JSONOption, KBArgument, QuietOption, chosen_kb
from kgkit.commands.output import write_json, write_line


def verify(
    name: KBArgument = None, home: HomeOption = None, as_json: JSONOption = False, quiet: QuietOption = False
) -> None:
    """Read a whole knowledge base and its vectors, and check them against their manifests and themselves.

    Exits with 1 if anything is wrong with them.
    """
    from kgkit.errors import NotThere
    from kgkit.home import Home
    from kgkit.store import find_build
    from kgkit.store import verify as problems_of
    from kgkit.vectors import damages, find_vectors, vectors_names

    where = Home.find(home)
    found = find_build(where, chosen_kb(name, home))
    called = f"{found.name}@{found.build}"
    with Messages(quiet=quiet, bars=not as_json).progress(f"verifying {called}"):
        problems = problems_of(found.folder)
        kb = where.kb(found.name)
        for vectors in vectors_names(kb):
            with suppress(NotThere):  # removed meanwhile
                problems += [
                    f"vectors {vectors}: {problem}" for problem in damages(find_vectors(kb, vectors))
                ]
    if as_json:
        write_json({"name": found.name, "build": found.build, "sound": not problems, "problems": problems})
    else:
        for problem in problems or ["sound"]:
            write_line(f"{called}: {problem}")
    if problems:
        raise typer.Exit(1)
