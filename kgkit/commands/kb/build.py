"""`kgkit build-kb`: from a source to a published knowledge base."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kgkit.commands.completion import complete_builder
from kgkit.commands.kb.lost_builds import lost_builds_warned, removals_reported
from kgkit.commands.messages import Messages
from kgkit.commands.output import plain, write_line
from kgkit.commands.text_streams import BadOption

if TYPE_CHECKING:
    from kgkit.building.build import Built
    from kgkit.home import KBHome

LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="TAG",
        help="Language of the names (BCP 47); with en, function words such as may are no mentions; with tr "
        "and az, I and İ are the capitals of ı and i. By default the source's or the builder's.",
    ),
]

_MAX_WORDS: Final = 3  # that a message names
_MANY: Final = 20_000  # names; of more, those of a sample of the entities are looked at
_SAMPLE: Final = 1_000


def _column(name: str, text: str) -> Any:
    """Return an option that names a column of a table."""
    return typer.Option(name, metavar="COLUMN", help=f"table: {text} Guessed by the headings.")


def build_kb(
    builder: Annotated[
        str,
        typer.Argument(
            metavar="BUILDER",
            autocompletion=complete_builder,
            help="Builder: wordnet, wikipedia, table, jsonl, …",
        ),
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Files or folders to read; kb:NAME is another knowledge base. Some builders can obtain "
            "their source themselves.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the knowledge base; by default the builder's."),
    ] = None,
    engine: Annotated[
        Literal["memory", "local", "spark"] | None,
        typer.Option(
            "--engine",
            metavar="ENGINE",
            help="memory, local or spark; by default memory for small sources, else local.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Reading processes; by default one a processor."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory for the build: 1GB, 500MB, …; by default 4GB, or half of what is free.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            help="Only the first N pages or lines, for trying out; 0 shows how a table is read, and builds "
            "nothing.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types", metavar="TYPE", help="Only entities of this kind or type; may be given several times."
        ),
    ] = None,
    min_count: Annotated[
        float,
        typer.Option(
            "--min-count", metavar="N", help="Leave out (surface, entity) pairs counted less often than this."
        ),
    ] = 0,
    priors: Annotated[
        list[Path] | None,
        typer.Option(
            "--priors", metavar="FILE", help="Add the counts of a p_e_m table; may be given several times."
        ),
    ] = None,
    url_pattern: Annotated[
        str | None,
        typer.Option(
            "--url-pattern",
            metavar="URL",
            help="Address of an entity, with {key}, {label} or {ATTRIBUTE} in it; links carry it.",
        ),
    ] = None,
    identifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--identifier",
            metavar="ATTRIBUTE",
            help="Attribute that is an identifier, which links carry; may be given several times.",
        ),
    ] = None,
    language: LanguageOption = None,
    bad: BadOption = "stop",
    key: Annotated[str | None, _column("--key", "Column of the unique keys.")] = None,
    label: Annotated[str | None, _column("--label", "Column of the names that people read.")] = None,
    aliases: Annotated[
        list[str] | None,
        _column(
            "--aliases", "Column of further names; `aliases|` splits its cells at each |. May be repeated."
        ),
    ] = None,
    description: Annotated[str | None, _column("--description", "Column of the descriptions.")] = None,
    kind: Annotated[str | None, _column("--kind", "Column of the kinds.")] = None,
    count: Annotated[
        str | None, _column("--count", "Column that says how often the names of a row were seen.")
    ] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(
            "--fact",
            metavar="COLUMN",
            help="table: Column of facts, headed by the relation; `owns|` splits its cells. May be repeated.",
        ),
    ] = None,
    number: Annotated[
        list[str] | None,
        typer.Option(
            "--number",
            metavar="COLUMN",
            help="table: Column that is kept as an attribute with numbers. May be repeated.",
        ),
    ] = None,
) -> None:
    """Build a knowledge base and publish it.

    Until the last step an existing knowledge base of that name stays unchanged.
    """
    from kgkit.building.build import build_kb as build
    from kgkit.building.engine_choice import ENGINE_CHOSEN
    from kgkit.building.options import GOING_ON, cores
    from kgkit.home import Home

    messages = Messages()
    began = time.monotonic()
    source = [*(files or ())]
    roles = {
        "key": key, "label": label, "aliases": aliases, "description": description, "kind": kind,
        "count": count, "fact": fact, "number": number,
    }  # fmt: skip
    columns = {role: names for role, names in roles.items() if names is not None}
    sentences = preview_of(builder, source, columns, skips_bad=bad == "skip")
    if limit == 0:
        for sentence in sentences or [f"the builder {builder} has no preview"]:
            write_line(plain(sentence))
        return
    for sentence in sentences[:1]:
        messages.write(sentence)
    where = Home.find()
    with (
        lost_builds_warned(where, [name or builder], messages),
        removals_reported(where, [name or builder], messages),
        messages.progress(f"building {name or builder}") as show,
    ):

        def tell(stage: str, read: int, _: int) -> None:
            if stage.startswith((GOING_ON, ENGINE_CHOSEN)):
                messages.write(stage)
            else:
                show(f"{stage} {read:,} records" if read else stage, read)

        before = where.kb(name or builder).published()
        additions = _additions(where.kb(name or builder), before)
        built = build(
            builder,
            source or None,
            name=name,
            progress=tell,
            engine=engine,
            workers=cores() if workers is None else workers,
            memory=memory,
            limit=limit,
            types=types or (),
            min_count=min_count,
            priors=priors or (),
            url_pattern=url_pattern,
            identifiers=identifiers,
            language=language,
            columns=columns,
            bad=bad,
        )
    same = " (as it was: same content)" if built.build == before else ""
    messages.write(f"built {built.name} in {time.monotonic() - began:.1f} s{same}: {built.path}")
    messages.write_dropped(built.dropped, built.examples)
    if not messages.quiet and (doubtful := _doubtful_names(built, language)):
        messages.write(doubtful)
    if additions and built.build != before:
        messages.write(
            f"warning: what `kgkit kb add` and `kgkit kb edit` did to {built.name}@{before} is not in this "
            f"build: {', '.join(additions)}. Do it again, or go back with "
            f"`kgkit kb publish {built.name}@{before}`"
        )
    manifest = built.manifest
    write_line(
        f"{built.name}@{built.build}: {manifest.entities:,} entities, {manifest.triples:,} triples, "
        f"{manifest.aliases:,} aliases"
    )


def preview_of(
    builder: str, sources: Sequence[str], columns: Mapping[str, str | Sequence[str]], *, skips_bad: bool
) -> list[str]:
    """Return what a builder says of how it reads the first source, and its first entities."""
    from kgkit.building.contract import find_builder

    reader = find_builder(builder)
    if columns:
        reader = reader.with_columns(columns)
    if skips_bad:
        reader = reader.skipping_bad()
    return [*reader.preview(Path(sources[0]))] if sources and reader.reads_columns else []


def _doubtful_names(built: "Built", language: str | None) -> str:
    """Return a sentence on the names that are easily linked wrongly; empty without any, and for a lexicon.

    Args:
        built: the build.
        language: value of `--language`.
    """
    from kgkit.candidates.doubtful_names import doubtful_names, is_lexicon
    from kgkit.candidates.spelling import FUNCTION_WORDS
    from kgkit.commands.kb.check import described, unknown_words
    from kgkit.kb import open_kb
    from kgkit.linking.auto import likely_language

    with open_kb(f"{built.name}@{built.build}") as kb:
        if is_lexicon(kb):
            return ""
        entities = _SAMPLE if built.manifest.aliases > _MANY else None
        listed = described(doubtful_names(kb, entities=entities))
        words = [word for word in sorted(FUNCTION_WORDS) if word.islower() and kb.store.alias_row(word)]
        unknown = unknown_words(kb) if kb.manifest.language else ""
        likely = likely_language(kb)
    if not listed:
        return ""
    among = "" if entities is None else f", among those of {entities:,} entities"
    hint = ""
    if language is None and likely != "en" and not built.manifest.language:
        hint = f"; the texts do not look English: --language {likely or 'TAG'} names their language"
    elif words and language is None and not built.manifest.language:
        shown = ", ".join(words[:_MAX_WORDS]) + (", …" if len(words) > _MAX_WORDS else "")
        hint = f"; --language en leaves out function words ({shown})"
    elif unknown:
        hint = f"; {unknown}"
    return f"names that are easily linked wrongly{among}: {listed}; see `kgkit kb check {built.name}`{hint}"


def _additions(kb: "KBHome", build: str | None) -> list[str]:
    """Return the names of the sources added to a build, and of the files of its edits."""
    from kgkit.errors import KgkitError
    from kgkit.store.manifest import read_manifest

    try:
        manifest = read_manifest(kb.builds / str(build))
    except KgkitError:
        return []
    return [source.name for source in (*manifest.added, *manifest.edited)]
