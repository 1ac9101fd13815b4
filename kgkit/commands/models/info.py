"""`kgkit models info`: all that a trained model says of itself."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from kgkit.commands.completion import complete_model
from kgkit.commands.models.list_models import needs_in_words
from kgkit.commands.options import JSONOption
from kgkit.commands.output import plain, size, write_json, write_line

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=complete_model,
        help="A trained model (`kgkit models list` names them); or its folder.",
    ),
]

_SHOWN = {
    "format", "kind", "name", "type", "task", "encoder", "needs", "config", "results", "data", "command",
    "sizes", "sha256", "kgkit_version", "created", "path", "bytes", "what", "roles",
}  # fmt: skip


def info(name: ModelArgument, as_json: JSONOption = False) -> None:
    """Show what a trained model is, what it needs, what it was trained on and what was measured."""
    from kgkit.home import Home
    from kgkit.models.listing import describe_model

    model = describe_model(name, Home.find())
    if as_json:
        write_json(model)
        return
    for sentence in _sentences(model):
        write_line(plain(sentence))
    sections = {
        "what it is": {key: value for key, value in model.items() if key not in _SHOWN},
        "measured": model["results"], "settings": model["config"],
        "trained on (SHA-256)": model["data"],
        "files": {path: size(count) for path, count in model["sizes"].items()},
    }  # fmt: skip
    for heading, content in sections.items():
        for number, (key, value) in enumerate(_flat(content)):
            if not number:
                write_line()
                write_line(heading)
            write_line(f"  {plain(f'{key}: {value}')}")


def _sentences(model: Mapping[str, Any]) -> Iterator[str]:
    """Yield what every model has, a sentence each."""
    yield f"{model['name']} is {model['what']}{', for the task ' + model['task'] if model['task'] else ''}."
    further = f", or as {', '.join(model['roles'][1:])}" if model["roles"][1:] else ""
    yield f"It opens as {model['roles'][0]}{further}."
    if model["encoder"]:
        yield f"Its encoder is {model['encoder']}."
    needs = needs_in_words(model["needs"]) or "no particular knowledge base, vectors or other model"
    yield f"It needs {needs}."
    by = f" by kgkit {model['kgkit_version']}" if model["kgkit_version"] else ""
    if model["created"]:
        yield f"It was trained on {model['created']}{by}."
    if model["command"]:
        yield f"Its manifest says that it was trained by: {model['command']}"
    yield f"It takes {model['bytes'] / 1e6:,.1f} MB in {model['path']}."


def _flat(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values of nested settings; of what is empty nothing."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
            for number, row in enumerate(value, 1):
                yield from _flat(row, f"{before}{name}.{number}.")
        elif value not in (None, "", [], ()):
            yield f"{before}{name}", ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
