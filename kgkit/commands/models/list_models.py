"""`kgkit models list`: which trained models there are, and whether what they need is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption
from kgkit.commands.output import Column, size, write_json, write_table
from kgkit.errors import KgkitError

if TYPE_CHECKING:
    from kgkit.home import Home

_COLUMNS = (
    Column(heading="name", fit="keep"),
    Column(heading="kind"),
    Column(heading="roles"),
    Column(heading="task"),
    Column(heading="encoder"),
    Column(heading="size", align="right"),
    Column(heading="created", fit="keep"),
    Column(heading="needs", fit="wrap"),
)


def list_models(as_json: JSONOption = False) -> None:
    """List the trained models on this machine, those that come with kgkit too, and what each needs."""
    from kgkit.home import Home
    from kgkit.models.folder import model_names

    where = Home.find()
    models = [_summary_or_error(name, where) for name in model_names(where)]
    if as_json:
        write_json(models)
    else:
        write_table(_COLUMNS, [_row(model) for model in models])
    if not any(where.models.glob("*")):
        Messages().write(
            f"these come with kgkit; none has been trained in {where.path}: `kgkit train` trains some"
        )


def _summary_or_error(model: str, home: "Home") -> dict[str, Any]:
    from kgkit.models.listing import describe_model

    try:
        return describe_model(model, home)
    except KgkitError as error:
        return {"name": model, "error": str(error)}


def needs_in_words(needs: list[dict[str, Any]]) -> str:
    """Return what a model needs, and what of it is not there."""
    return ", ".join(f"{need['name']}{'' if need['available'] else ' (not there)'}" for need in needs)


def _row(model: dict[str, Any]) -> list[str]:
    if "error" in model:
        return [model["name"], *[""] * 6, model["error"]]
    kind = f"{model['kind']} ({model['type']})" if model["type"] else model["kind"]
    roles = ", ".join(model["roles"])
    fields = [kind, roles, model["task"], Path(model["encoder"]).name, size(model["bytes"])]
    return [model["name"], *fields, model["created"][:10], needs_in_words(model["needs"])]
