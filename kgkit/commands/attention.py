"""`kgkit attention`: what a text's words attend to, and the maps that their attention is mixed with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, JSONOption, check_text
from kgkit.commands.output import Column, write_json, write_table
from kgkit.errors import UsageError
from kgkit.files import check_output_path, written

if TYPE_CHECKING:
    from kgkit.methods.attention import TextAttention

_SUFFIXES: Final = (".svg", ".html")
_NONE: Final = "none"


def attention(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to read.")],
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="NAME", help="A model whose attention is mixed with maps, or its folder."
        ),
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="SECOND", help="Second text of a pair.", show_default=False)
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Draw maps and attention; .html: on a page."),
    ] = None,
    layer: Annotated[
        int, typer.Option("--layer", min=0, metavar="N", help="Layer, from 1; 0: the last one.")
    ] = 0,
    head: Annotated[
        int, typer.Option("--head", min=0, metavar="N", help="Attention head, from 1; 0: the mean of all.")
    ] = 0,
    device: DeviceOption = "auto",
    plain: Annotated[
        str | None,
        typer.Option(
            "--plain",
            metavar="ENCODER",
            help="Plain encoder, or model with one, shown beside it; none: none. By default what the model "
            "began as.",
            show_default=False,
        ),
    ] = None,
    as_json: JSONOption = False,
) -> None:
    """Show the maps of a text, and what its words attend to with them and without.

    Without --svg and --json: how many cells of each map are not zero.
    """
    from kgkit.home import Home
    from kgkit.methods.attention import text_attention
    from kgkit.models.encoders import load_encoder
    from kgkit.models.opening import open_model

    texts = [text] if second is None else [text, second]
    _check(texts, svg)
    where = Home.find()
    with open_model(model, "predictor", home=where, device=device) as predictor:
        name = predictor.manifest.encoder if plain is None else plain
        encoder = None if name == _NONE else load_encoder(name, where, device=device)
        shown = text_attention(predictor, texts, plain=encoder, layer=layer, head=head)
    if svg is not None:
        _draw(svg, shown, " / ".join(texts), "" if encoder is None else name)
        Messages().write(f"drawn: {svg}")
    if as_json:
        write_json({"texts": texts, **_as_dict(shown)})
    elif svg is None:
        columns = [Column(heading="map"), *(Column(heading=name, align="right") for name in ("cells", "of"))]
        if not shown.maps:
            raise UsageError(
                f"{model} reads no maps: it is a control, or no source of a map was named; --svg and --json "
                "show its attention"
            )
        every = f"{shown.words**2:,}"
        write_table(columns, [[name, f"{count:,}", every] for name, count in shown.cells.items()])


def _check(texts: list[str], svg: Path | None) -> None:
    """Refuse texts and a picture that cannot be, before the model is opened."""
    for name, text in zip(("TEXT", "SECOND"), texts, strict=False):
        check_text(text, name)
    if svg is not None:
        if svg.suffix.lower() not in (*_SUFFIXES, ""):
            raise UsageError(f"--svg {svg}: it draws SVG, so its name ends in {' or '.join(_SUFFIXES)}")
        check_output_path(svg)


def _as_dict(shown: "TextAttention") -> dict[str, Any]:
    """Return what is shown as JSON has it."""
    return {
        "pieces": shown.pieces, "words": shown.words, "cells": shown.cells,
        "maps": {name: matrix.tolist() for name, matrix in shown.maps.items()},
        "plain": None if shown.plain is None else shown.plain.tolist(), "mixed": shown.mixed.tolist(),
    }  # fmt: skip


def _draw(path: Path, shown: "TextAttention", title: str, plain: str) -> None:
    from kgkit.methods.attention_picture import attention_picture

    with written(path) as stream:
        stream.write(attention_picture(shown, suffix=path.suffix or ".svg", title=title, plain=plain))
