"""`kgkit kb verify`: check a knowledge base against its manifest."""

from contextlib import suppress
from functools import partial
from typing import Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption, KBArgument, chosen_kb, flag
from kgkit.commands.output import write_json, write_line


def verify(
    name: KBArgument = None,
    quick: Annotated[
        bool,
        flag(
            "--quick", help="Compare the checksums of the files only, which finds any damage since the build."
        ),
    ] = False,
    as_json: JSONOption = False,
) -> None:
    """Read a whole knowledge base and its vectors, and check them for damage and consistency.

    Exits with 1 if there are problems.
    """
    from kgkit.errors import NotThere
    from kgkit.home import Home
    from kgkit.store import find_build, read_build
    from kgkit.store import verify as problems_of
    from kgkit.vectors import damages, find_vectors, vectors_names
    from kgkit.versions import read_current

    where, chosen = Home.find(), chosen_kb(name)
    build = find_build(where, chosen)
    with Messages(bars=not as_json).progress(f"verifying {build.name}@{build.build}"):
        build, problems = read_build(where, chosen, partial(problems_of, quick=quick))
        kb = where.kb(build.name)
        for vectors in vectors_names(kb):
            with suppress(NotThere):  # removed meanwhile
                problems += [
                    f"vectors {vectors}: {problem}"
                    for problem in read_current(partial(find_vectors, kb, vectors), damages)
                ]
    name_of_build = f"{build.name}@{build.build}"
    if as_json:
        write_json({"name": build.name, "build": build.build, "sound": not problems, "problems": problems})
    else:
        for problem in problems or ["sound"]:
            write_line(f"{name_of_build}: {problem}")
    if problems:
        raise typer.Exit(1)
