"""`kgkit tree`: a text with the facts that K-BERT would read in it."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    JSONOption,
    QueryOption,
    check_text,
    flag,
    repeated,
)
from kgkit.commands.output import Column, write_json, write_table
from kgkit.commands.setting_options import takes_settings
from kgkit.errors import UsageError
from kgkit.files import check_output_path, written
from kgkit.linking.settings import LinkSettings

if TYPE_CHECKING:
    from kgkit.trees import FlatTree, Strings


@takes_settings(LinkSettings, "coherence", "device")
def tree(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to read.")],
    kb: Annotated[
        list[str] | None,
        repeated("--kb", "KB", "KB whose facts are injected"),
    ] = None,
    query: QueryOption = "longest",
    linker: Annotated[
        str, typer.Option("--linker", metavar="MODEL", help="Model of --query link: prior, gloss, …")
    ] = "",
    max_facts: Annotated[
        int, typer.Option("--max-facts", min=1, metavar="N", help="Facts of a mention, at most.")
    ] = 2,
    relations: Annotated[
        bool,
        typer.Option(
            "--relations/--no-relations", help="Inject the names of relations too.", show_default=False
        ),
    ] = True,
    attributes: Annotated[bool, flag("--attributes", help="Inject values too, not entities alone.")] = False,
    size: Annotated[
        int | None, typer.Option("--size", min=2, metavar="N", help="Tokens, at most; all unless given.")
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the tree.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Draw it on an HTML page.")
    ] = None,
    as_json: JSONOption = False,
    **values: Any,
) -> None:
    """Show a text with the facts that K-BERT would read in it: its sentence tree."""
    from kgkit.kb import open_kb
    from kgkit.linking.multi_kb import MultiKBLinker
    from kgkit.trees import Flattener, Frame, TreeBuilder, TreeConfig, generators_of
    from kgkit.types import Document, LinkedDocument

    check_text(text, "TEXT")
    if query == "link" and not linker:
        raise UsageError("--query link needs a linker: name one, as --linker prior")
    if linker and query != "link":
        raise UsageError(f"--query {query} uses no linker: leave out --linker, or use --query link")
    if values["coherence"] and not linker:
        raise UsageError("--coherence rescores links, and only --query link makes links")
    pictures = {suffix: path for suffix, path in ((".svg", svg), (".html", html)) if path is not None}
    for suffix, path in pictures.items():
        if path.suffix.lower() not in _SUFFIXES[suffix]:
            form = suffix.removeprefix(".")
            raise UsageError(f"--{form} {path}: it draws {form.upper()}, so its name ends in {suffix}")
        check_output_path(path)
    with ExitStack() as stack:
        names: list[str | None] = [*kb] if kb else [None]
        kbs = [stack.enter_context(open_kb(name)) for name in names]
        documents: Iterable[Document | LinkedDocument] = [Document("", text)]
        if linker:
            linkers = MultiKBLinker.open(kbs, model=linker, references=True, **values)
            documents = linkers([Document("", text)])
        generators = generators_of(kbs, query)
        builder = TreeBuilder(
            generators,
            TreeConfig(max_facts=max_facts, relations=relations, attributes=attributes),
        )
        [sentence_tree] = builder((document,) for document in documents)
        linking_generators = linkers.generators if linker else generators
    flat = Flattener(_split_words, Frame(before=("[CLS]",)), size)(sentence_tree)
    Messages().write_omissions([generator.omissions for generator in linking_generators])
    if not flat.branches.any():
        names_of_kbs = ", ".join(opened.name for opened in kbs)
        Messages().write(
            f"no fact fits into {size} tokens beside the text: --size takes more"
            if sentence_tree.hooks
            else f"no fact found: {names_of_kbs} has none about a name in this text"
        )
    for suffix, path in pictures.items():
        _draw(path, flat, suffix, text)
        Messages().write(f"drawn: {path}")
    if as_json:
        write_json({"text": text, "tokens": [*map(_row_as_dict, _rows(flat))]})
    elif not pictures:
        columns = [
            Column(heading="token"),
            *(Column(heading=name, align="right") for name in _NUMBERS),
        ]
        write_table(columns, [[row[0], *map(str, row[1:])] for row in _rows(flat)])


_SUFFIXES = {".svg": (".svg", ""), ".html": (".html", ".htm", ".xhtml", "")}  # a device has none
_NUMBERS = ("position", "branch", "hook", "start", "end")


def _rows(flat: "FlatTree") -> list[tuple[str, int, int, int, int, int]]:
    numbers = (flat.positions, flat.branches, flat.hooks, flat.starts, flat.ends)
    return [*zip(flat.tokens, *(array.tolist() for array in numbers), strict=True)]


def _row_as_dict(row: tuple[str, int, int, int, int, int]) -> dict[str, str | int]:
    return dict(zip(("token", *_NUMBERS), row, strict=True))


def _split_words(text: str) -> "Strings":
    """Cut a text into words, and into characters where there are no spaces."""
    from kgkit.text import token_spans
    from kgkit.trees import Strings

    spans = [*token_spans(text)]
    return Strings(
        [text[start:end] for start, end in spans], [span[0] for span in spans], [span[1] for span in spans]
    )


def _draw(path: Path, flat: "FlatTree", suffix: str, title: str) -> None:
    from kgkit.trees.picture import picture

    with written(path) as stream:
        stream.write(picture(flat, suffix=suffix, title=title))
