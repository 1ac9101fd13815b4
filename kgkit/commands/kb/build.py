"""`kgkit build-kb`: from a source to a published knowledge base."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, JSONOption, QuietOption
from kgkit.commands.output import write_json, write_line

if TYPE_CHECKING:
    from kgkit.home import KBHome


def build_kb(
    builder: Annotated[
        str, typer.Argument(metavar="BUILDER", help="Which builder: wordnet, wikipedia, jsonl, …")
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="PATH",
            help="File or folder to read, may be given several times; kb:NAME is another knowledge base. "
            "Some builders can obtain it themselves.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the knowledge base; by default the builder's."),
    ] = None,
    engine: Annotated[
        Literal["memory", "local", "spark"] | None,
        typer.Option(
            "--engine", metavar="ENGINE", help="memory, local or spark; by default the builder's choice."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Reading processes; by default one a processor."),
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory for grouping: 1GB, 500MB, …")
    ] = "4GB",
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="Only the first N pages or lines, for trying out."),
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
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume",
            help="Resume from what a stopped build has read (the default), or start again.",
        ),
    ] = True,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Spark's master, for --engine spark.")
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
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Build a knowledge base and publish it.

    Until the last step an existing knowledge base of that name stays unchanged.
    """
    from kgkit.building.build import build_kb as build
    from kgkit.building.options import GOING_ON, cores
    from kgkit.commands.kb.info import describe_build
    from kgkit.home import Home

    messages = Messages(quiet=quiet, bars=not as_json)
    began = time.monotonic()
    with messages.progress(f"building {name or builder}") as show:

        def tell(stage: str, read: int, _: int) -> None:
            if stage.startswith(GOING_ON):
                messages.write(stage)
            else:
                show(f"{stage} {read:,} records" if read else stage)

        where = Home.find(home)
        before = where.kb(name or builder).published()
        additions = _additions(where.kb(name or builder), before)
        built = build(
            builder,
            source,
            name=name,
            home=where.path,
            progress=tell,
            engine=engine,
            workers=cores() if workers is None else workers,
            memory=memory,
            limit=limit,
            types=types or (),
            min_count=min_count,
            resume=resume,
            priors=priors or (),
            master=master,
            url_pattern=url_pattern,
            identifiers=identifiers,
        )
    same = " (as it was: same content)" if built.build == before else ""
    messages.write(f"built {built.name} in {time.monotonic() - began:.1f} s{same}: {built.path}")
    messages.write_dropped(built.dropped, built.examples)
    if additions and built.build != before:
        messages.write(
            f"warning: what was added to {built.name}@{before} is not in this build: {', '.join(additions)}. "
            f"Add it again, or go back with `kgkit kb publish {built.name}@{before}`"
        )
    if as_json:
        write_json(describe_build(built.name, built.path, built.manifest))
    else:
        manifest = built.manifest
        write_line(
            f"{built.name}@{built.build}: {manifest.entities:,} entities, {manifest.triples:,} triples, "
            f"{manifest.aliases:,} aliases"
        )


def _additions(kb: "KBHome", build: str | None) -> list[str]:
    """Return the names of the sources added to a build."""
    from kgkit.errors import KgkitError
    from kgkit.store.manifest import read_manifest

    try:
        return [source.name for source in read_manifest(kb.builds / str(build)).added]
    except KgkitError:
        return []
