"""`kgkit project`: vectors to look at, in the embedding projector or as a picture."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.completion import complete_vectors
from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.options import EntityKindOption, limit_option, open_chosen_kb
from kgkit.errors import MissingExtra, UsageError
from kgkit.files import check_folder, check_output_path, new_folder, written

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Entity, Numbers
    from kgkit.vectors import Vectors

_PICTURED, _LISTED = 5_000, 10_000


def project(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KB[/NAME]", autocompletion=complete_vectors, help="Vectors to show: wordnet/text."
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write vectors.tsv and metadata.tsv into a new folder."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw a picture: .png, .svg or .pdf."),
    ] = None,
    limit: Annotated[
        int | None,
        limit_option("Number of entities, drawn evenly, 0 for all; by default 10,000, in a picture 5,000."),
    ] = None,
    color_by: Annotated[
        str | None,
        typer.Option(
            "--color-by",
            metavar="FIELD",
            help="types, kind, pos, or an attribute (lexfile); by default types, else pos, else kind.",
        ),
    ] = None,
    kind: EntityKindOption = None,
) -> None:
    """Write vectors for the embedding projector, or draw them as a picture coloured by type."""
    from kgkit.vectors.projection import SUFFIXES, project_rows
    from kgkit.vectors.projection import picture as drawn

    messages = Messages()
    if to is None and picture is None:
        raise UsageError("where to? --to FOLDER writes the projector's files, --picture FILE draws a picture")
    if to is not None:
        check_folder(to)
    if picture is not None:
        check_output_path(picture)
        if picture.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{picture}: a picture's name ends in {', '.join(SUFFIXES)}")
        for package in ("matplotlib", "sklearn"):
            if find_spec(package) is None:
                raise MissingExtra(package.replace("sklearn", "scikit-learn"), "plot")
    base, _, last = name.partition("/")
    with open_chosen_kb(base) as kb, messages.progress("projecting") as tell:
        vectors = kb.vectors(last or None)
        if to is not None:
            rows = choose_rows(kb, vectors, _LISTED if limit is None else limit, kind)
            entities = [kb[row] for row in rows.tolist()]
            write_pair(vectors, rows, entities, choose_field(entities, color_by), to, tell)
            messages.write(f"wrote {len(rows):,} vectors of {vectors.name}: {to}")
        if picture is not None:
            rows = choose_rows(kb, vectors, _PICTURED if limit is None else limit, kind)
            entities = [kb[row] for row in rows.tolist()]
            field = choose_field(entities, color_by)
            title = (
                f"{vectors.name}: {len(rows):,} of {vectors.manifest.covered:,} vectors by {field} (t-SNE)"
            )
            tell(f"laying out {len(rows):,} points")
            points = project_rows(vectors.matrix, rows)
            groups = [group_of(entity, field) for entity in entities]
            with written(picture) as stream:
                stream.write(drawn(points, groups, suffix=picture.suffix, title=title))
            messages.write(f"drew {len(rows):,} vectors of {vectors.name}: {picture}")


def choose_rows(kb: "KnowledgeBase", vectors: "Vectors", limit: int, kind: str | None) -> "Numbers":
    """Return the rows of up to *limit* entities that have a vector, drawn evenly; 0 is all.

    Raises:
        UsageError: if there is none.
    """
    import numpy as np

    from kgkit.vectors.projection import sample_rows

    among = None
    if kind is not None:
        among = np.fromiter((entity.id for entity in kb.entities(kind)), np.int64)
    rows = sample_rows(vectors.matrix, limit, among=among)
    if not len(rows):
        raise UsageError(f"no entity{f' of kind {kind}' if kind else ''} has a vector in {vectors.name}")
    return rows


def write_pair(
    vectors: "Vectors",
    rows: "Numbers",
    entities: Sequence["Entity"],
    field: str,
    folder: Path,
    tell: ProgressCallback,
) -> None:
    """Write the projector's pair beside *folder* and rename it, so that it appears whole or not at all."""
    from kgkit.vectors.projection import write_projector

    columns = ("key", "label", field, "description")
    metadata = (
        (entity.key, entity.label, group_of(entity, field), entity.description) for entity in entities
    )
    with new_folder(folder) as temporary:
        write_projector(
            temporary, vectors.matrix, rows, columns, metadata,
            lambda _, count, of: tell(f"{count:,} of {of:,}", count, of),
        )  # fmt: skip


def choose_field(entities: Sequence["Entity"], field: str | None) -> str:
    """Return *field*; if it is None, the first of types, pos and kind that some entity has.

    Raises:
        UsageError: if no entity has a word in this field; names the fields that there are.
    """
    attributes = {name for entity in entities for name in entity.attributes}
    known = ("types", "pos", "kind", *sorted(attributes))
    used = [name for name in known if any(group_of(entity, name) for entity in entities)]
    if field is None:
        return used[0] if used else "kind"
    if field not in used:
        raise UsageError(
            f"none of these entities has one word for {field!r}; --color-by takes {', '.join(used)}"
        )
    return field


def group_of(entity: "Entity", field: str) -> str:
    """Return the one word of *entity* by which it is coloured; "" if it has none."""
    match field:
        case "types":
            return entity.types[0] if entity.types else ""
        case "kind":
            return entity.kind
        case "pos":
            return entity.pos or ""
    value = entity.attributes.get(field)
    return value if isinstance(value, str) else ""
