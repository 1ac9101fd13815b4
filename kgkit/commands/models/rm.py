"""`kgkit models rm`: remove trained models."""

from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.completion import complete_model
from kgkit.commands.messages import Messages
from kgkit.commands.options import flag
from kgkit.errors import NotThere, UsageError

if TYPE_CHECKING:
    from kgkit.home import Home


def rm(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", autocompletion=complete_model, help="Models to remove.")
    ],
    force: Annotated[bool, flag("--force", help="Remove what another model needs, too.")] = False,
) -> None:
    """Remove trained models, without asking again.

    A training that runs is not touched: what it makes is there when it ends.
    """
    from kgkit.home import Home
    from kgkit.models.needs import models_needing
    from kgkit.models.publishing import remove_model
    from kgkit.models.registering import mark_removed

    where = Home.find()
    models = list(dict.fromkeys(names))
    for name in models:  # all of them can go, or nothing is removed
        _check_removable(where, name)
        dependents = [other for other in models_needing(where, name) if other not in models]
        if dependents and not force:
            raise UsageError(
                f"{', '.join(dependents)} cannot be opened without the model {name}: remove those too, or "
                "say --force"
            )
    for name in models:
        remove_model(where, name)
        mark_removed(where, name)
        Messages().write(f"removed {name}")


def _check_removable(home: "Home", name: str) -> None:
    from kgkit.models.folder import SHIPPED, has_model, model_names

    if has_model(home, name):
        return
    if (SHIPPED / name).is_dir() and name in model_names(home):
        raise UsageError(f"the model {name} comes with kgkit, and stays")
    trained = [model for model in model_names(home) if has_model(home, model)]
    raise NotThere(f"no model {name!r} in {home.models}; there are: {', '.join(trained) or 'none'}")
