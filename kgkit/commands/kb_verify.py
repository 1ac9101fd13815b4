"""`kgkit kb verify`: is a knowledge base what its manifest says?"""

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, JSONOption, KBArgument, QuietOption, chosen_kb
from kgkit.commands.output import write_json, write_line


def verify(
    name: KBArgument = None, home: HomeOption = None, as_json: JSONOption = False, quiet: QuietOption = False
) -> None:
    """Read a whole knowledge base and check it against its manifest and itself.

    Exits with 1 if anything is wrong with it.
    """
    from kgkit.home import Home
    from kgkit.store import find_build
    from kgkit.store import verify as problems_of

    found = find_build(Home.find(home), chosen_kb(name, home))
    called = f"{found.name}@{found.build}"
    with Messages(quiet=quiet, bars=not as_json).progress(f"verifying {called}"):
        problems = problems_of(found.folder)
    if as_json:
        write_json({"name": found.name, "build": found.build, "sound": not problems, "problems": problems})
    else:
        for problem in problems or ["sound"]:
            write_line(f"{called}: {problem}")
    if problems:
        raise typer.Exit(1)
