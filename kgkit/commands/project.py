"""`kgkit project`: vectors to look at, in the embedding projector or as a picture."""

import secrets
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kgkit.commands.completion import complete_vectors
from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.options import EntityKindOption, limit_option, open_chosen_kb
from kgkit.commands.output import check_output_path, open_output
from kgkit.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Entity, Matrix, Numbers
    from kgkit.vectors import Vectors
    from kgkit.vectors.projection import Method

_PICTURED, _LISTED = 5_000, 10_000
_MOST_TYPES: Final = 60
_NAMED: Final = 60
_COMPARED: Final = 5_000  # vectors whose neighbors say which field tells most


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
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="METHOD", help="Projection of the picture: tsne, or pca (quick, coarse)."
        ),
    ] = "tsne",
    color_by: Annotated[
        str | None,
        typer.Option(
            "--color-by",
            metavar="FIELD",
            help="types, kind, pos, or an attribute (lexfile); by default the one that tells most.",
        ),
    ] = None,
    kind: EntityKindOption = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.")] = 0,
) -> None:
    """Write vectors for the embedding projector, or draw them as a picture coloured by type."""
    from kgkit.vectors.picture import SUFFIXES
    from kgkit.vectors.projection import checked_method

    projection = checked_method(method)
    messages = Messages()
    if to is None and picture is None:
        raise UsageError("where to? --to FOLDER writes the projector's files, --picture FILE draws a picture")
    if to is not None:
        from kgkit.evaluation.files import check_folder

        check_folder(to)
    if picture is not None:
        check_output_path(picture)
        if picture.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{picture}: a picture's name ends in {', '.join(SUFFIXES)}")
        if find_spec("matplotlib") is None:
            raise MissingExtra("matplotlib", "plot")
    base, _, last = name.partition("/")
    with open_chosen_kb(base) as kb, messages.progress("projecting") as tell:
        vectors = kb.vectors(last or None)
        if to is not None:
            rows = choose_rows(kb, vectors, _LISTED if limit is None else limit, kind, seed)
            write_pair(colored(kb, vectors, rows, color_by, seed), to, tell)
            messages.write(f"wrote {len(rows):,} vectors of {vectors.name}: {to}")
        if picture is not None:
            rows = choose_rows(kb, vectors, _PICTURED if limit is None else limit, kind, seed)
            degrees = [kb.degree(row) for row in rows.tolist()]
            draw(colored(kb, vectors, rows, color_by, seed), degrees, picture, projection, seed, tell)
            messages.write(f"drew {len(rows):,} vectors of {vectors.name}: {picture}")


def choose_rows(
    kb: "KnowledgeBase", vectors: "Vectors", limit: int, kind: str | None, seed: int
) -> "Numbers":
    """Return the rows of up to *limit* entities that have a vector, drawn evenly; 0 is all."""
    import numpy as np

    from kgkit.vectors.projection import sample_rows

    among = None
    if kind is not None:
        among = np.fromiter((entity.id for entity in kb.entities(kind)), np.int64)
    rows = sample_rows(vectors.matrix, limit, seed, among=among)
    if not len(rows):
        raise UsageError(f"no entity{f' of kind {kind}' if kind else ''} has a vector in {vectors.name}")
    return rows


class ColoredVectors(NamedTuple):
    """Vectors of entities, and the field that colors them.

    Attributes:
        vectors: vectors of a knowledge base.
        rows: (P,) rows of the entities.
        entities: P entities.
        field: field of entities whose values are colors.
    """

    vectors: "Vectors"
    rows: "Numbers"
    entities: list["Entity"]
    field: str


def colored(
    kb: "KnowledgeBase", vectors: "Vectors", rows: "Numbers", color_by: str | None, seed: int
) -> ColoredVectors:
    """Return the entities of *rows* with the field that the user named, or else the one that tells most."""
    entities = [kb[row] for row in rows.tolist()]
    return ColoredVectors(vectors, rows, entities, color_field(entities, vectors, rows, color_by, seed))


def write_pair(content: ColoredVectors, folder: Path, tell: ProgressCallback) -> None:
    """Write the projector's pair beside *folder* and rename it, so that it appears whole or not at all."""
    from kgkit.vectors.projection import write_projector

    vectors, rows, entities, field = content
    columns = ("key", "label", field, "description")
    metadata = (
        (entity.key, entity.label, group_of(entity, field), entity.description) for entity in entities
    )
    temporary = folder.absolute().with_name(f".{secrets.token_hex(8)}.part")
    temporary.mkdir()
    try:
        write_projector(
            temporary,
            vectors.matrix,
            rows,
            columns,
            metadata,
            lambda _, count, of: tell(f"{count:,} of {of:,}", count, of),
        )
        temporary.rename(folder.absolute())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def draw(
    content: ColoredVectors,
    degrees: Sequence[int],
    path: Path,
    method: "Method",
    seed: int,
    tell: ProgressCallback,
) -> None:
    """Draw entities as a picture, with the names of those that have most facts.

    Args:
        content: the vectors.
        degrees: numbers of facts of the entities.
        path: file of the picture.
        method: method that projects the vectors.
        seed: seed of the projection.
        tell: function that takes the progress.
    """
    from kgkit.vectors.picture import picture
    from kgkit.vectors.projection import project_rows

    vectors, rows, entities, field = content
    tell(f"laying out {len(rows):,} points")
    points = project_rows(vectors.matrix, rows, method, seed)
    best_connected = sorted(range(len(entities)), key=lambda index: (-degrees[index], index))[:_NAMED]
    how = {"tsne": "t-SNE: near is alike; how far apart clouds lie, and how wide they are, says nothing"}
    drawn = picture(
        points,
        [group_of(entity, field) for entity in entities],
        suffix=path.suffix,
        names=[(index, entities[index].label) for index in best_connected],
        title=f"{vectors.name}: {len(rows):,} of {vectors.manifest.covered:,} vectors by {field}",
        note=how.get(method, "the two directions of most variance (PCA)"),
    )
    with open_output(path) as write:
        write(drawn)


def color_field(
    entities: Sequence["Entity"], vectors: "Vectors", rows: "Numbers", field: str | None, seed: int
) -> str:
    """Return *field*, or the one that tells most about vectors, if it is None.

    Args:
        entities: P entities.
        vectors: vectors of the knowledge base.
        rows: (P,) rows of the entities.
        field: field of entities; None: that of `default_field`, for 5,000 of them at most.
        seed: seed of what is drawn where there are more.

    Raises:
        UsageError: if no entity has a word in this field; names the fields that there are.
    """
    import numpy as np

    if field is not None:
        return check_field(entities, field)
    drawn = np.arange(len(entities))
    if len(drawn) > _COMPARED:
        drawn = np.sort(np.random.default_rng(seed).choice(drawn, _COMPARED, replace=False))
    matrix = np.asarray(vectors.matrix).take(rows[drawn], axis=0)
    return default_field([entities[index] for index in drawn.tolist()], matrix)


def default_field(entities: Sequence["Entity"], vectors: "Matrix") -> str:
    """Return the field whose groups tell most about which vectors lie beside each other.

    Fields are the types, attributes of 2 to 60 words, the part of speech and the kind; the first of
    them if none tells anything.

    Args:
        entities: P entities.
        vectors: (P, D).
    """
    from kgkit.vectors.grouping import nearest_rows, shared_bits

    attributes = dict.fromkeys(name for entity in entities for name in entity.attributes)
    groups = {name: [group_of(entity, name) for entity in entities] for name in ("types", *attributes)}
    chosen = {
        name: words
        for name, words in groups.items()
        if name == "types" or 2 <= len({*words} - {""}) <= _MOST_TYPES
    }
    chosen |= {name: [group_of(entity, name) for entity in entities] for name in ("pos", "kind")}
    nearest = nearest_rows(vectors)
    bits = {name: shared_bits(words, nearest) for name, words in chosen.items()}
    return max(bits, key=lambda name: (bits[name], bool(any(chosen[name]))))


def check_field(entities: Sequence["Entity"], field: str) -> str:
    """Return *field*.

    Raises:
        UsageError: if no entity has a word in this field; names the fields that there are.
    """
    if not any(group_of(entity, field) for entity in entities):
        attributes = {name for entity in entities for name in entity.attributes if group_of(entity, name)}
        fields = ", ".join(("types", "kind", "pos", *sorted(attributes)))
        raise UsageError(f"none of these entities has one word for {field!r}; --color-by takes {fields}")
    return field


def group_of(entity: "Entity", field: str) -> str:
    """Return the one word of *entity* that it is coloured by; "" if it has none."""
    match field:
        case "types":
            return entity.types[0] if entity.types else ""
        case "kind":
            return entity.kind
        case "pos":
            return entity.pos or ""
    value = entity.attributes.get(field)
    return value if isinstance(value, str) else ""
