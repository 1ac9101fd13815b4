"""`kgkit tree`: a text with the facts that K-BERT would read in it."""

from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
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
from kgkit.pages import SUFFIXES

if TYPE_CHECKING:
    from kgkit.text import Folding
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
        str | None,
        typer.Option(
            "--linker", metavar="MODEL", help="Model that links the text, in the place of --query: prior, …"
        ),
    ] = None,
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
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the tree; .html: on a page.")
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
    if values["coherence"] and linker is None:
        raise UsageError("--coherence rescores links, and only --linker makes links")
    if svg is not None:
        if svg.suffix.lower() not in SUFFIXES:
            raise UsageError(f"--svg {svg}: the name of a picture ends in {' or '.join(SUFFIXES)}")
        check_output_path(svg)
    with ExitStack() as stack:
        names: list[str | None] = [*kb] if kb else [None]
        kbs = [stack.enter_context(open_kb(name)) for name in names]
        documents: Iterable[Document | LinkedDocument] = [Document("", text)]
        if linker is not None:
            linkers = MultiKBLinker.open(kbs, model=linker, references=True, **values)
            documents = linkers([Document("", text)])
        generators = generators_of(kbs, query)
        builder = TreeBuilder(
            generators,
            TreeConfig(max_facts=max_facts, relations=relations, attributes=attributes),
        )
        [sentence_tree] = builder((document,) for document in documents)
        linking_generators = generators if linker is None else linkers.generators
    folding = max((opened.store.folding for opened in kbs), key=lambda folding: folding.version)
    flat = Flattener(partial(_split_words, folding), Frame(before=("[CLS]",)), size)(sentence_tree)
    Messages().write_omissions([generator.omissions for generator in linking_generators])
    if not flat.branches.any():
        names_of_kbs = ", ".join(opened.name for opened in kbs)
        Messages().write(
            f"no fact fits into {size} tokens beside the text: --size takes more"
            if sentence_tree.hooks
            else f"no fact found: {names_of_kbs} has none about a name in this text"
        )
    if svg is not None:
        _draw(svg, flat, text)
        Messages().write(f"drawn: {svg}")
    if as_json:
        write_json({"text": text, "tokens": [*map(_row_as_dict, _rows(flat))]})
    elif svg is None:
        columns = [
            Column(heading="token"),
            *(Column(heading=name, align="right") for name in _NUMBERS),
        ]
        write_table(columns, [[row[0], *map(str, row[1:])] for row in _rows(flat)])


_NUMBERS = ("position", "branch", "hook", "start", "end")


def _rows(flat: "FlatTree") -> list[tuple[str, int, int, int, int, int]]:
    numbers = (flat.positions, flat.branches, flat.hooks, flat.starts, flat.ends)
    return [*zip(flat.tokens, *(array.tolist() for array in numbers), strict=True)]


def _row_as_dict(row: tuple[str, int, int, int, int, int]) -> dict[str, str | int]:
    return dict(zip(("token", *_NUMBERS), row, strict=True))


def _split_words(folding: "Folding", text: str) -> "Strings":
    """Cut a text into words, and into characters where there are no spaces."""
    from kgkit.trees import Strings

    spans = [*folding.spans(folding.comparable(text))]
    return Strings(
        [text[start:end] for start, end in spans], [span[0] for span in spans], [span[1] for span in spans]
    )


def _draw(path: Path, flat: "FlatTree", title: str) -> None:
    from kgkit.trees.picture import picture

    with written(path) as stream:
        stream.write(picture(flat, suffix=path.suffix, title=title))
