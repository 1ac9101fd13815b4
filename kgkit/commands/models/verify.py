"""`kgkit models verify`: is a trained model what its manifest says?"""

from typing import Annotated

import typer

from kgkit.commands.completion import complete_model
from kgkit.commands.options import JSONOption
from kgkit.commands.output import plain, write_json, write_line


def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete_model,
            help="Models to check, or their folders; all of them if none is named.",
        ),
    ] = None,
    as_json: JSONOption = False,
) -> None:
    """Compare the files of trained models with the checksums in their manifests, and open their headers.

    Exits with 1 if anything is wrong with them.
    """
    from kgkit.home import Home
    from kgkit.models.folder import model_names, read_model
    from kgkit.models.verifying import verify_model

    where = Home.find()
    models = list(dict.fromkeys(names or model_names(where)))
    checked = [(name, read_model(name, where, None, verify_model)) for name in models]
    if as_json:
        write_json(
            [{"name": name, "sound": not problems, "problems": problems} for name, problems in checked]
        )
    else:
        for name, problems in checked:
            for problem in problems or ["sound"]:
                write_line(plain(f"{name}: {problem}"))
    if any(problems for _, problems in checked):
        raise typer.Exit(1)
