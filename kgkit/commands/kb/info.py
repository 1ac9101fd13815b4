"""`kgkit kb info`: what a knowledge base holds, and where it came from."""

from typing import TYPE_CHECKING, Any

from kgkit.commands.options import JSONOption, RecentKBArgument, open_chosen_kb
from kgkit.commands.output import Column, number, plain, size, write_json, write_line, write_table

if TYPE_CHECKING:
    from kgkit.building.build import Built
    from kgkit.kb import KnowledgeBase
    from kgkit.store import Manifest


def info(name: RecentKBArgument = None, as_json: JSONOption = False) -> None:
    """Show what a knowledge base holds and where it came from."""
    from msgspec import structs

    from kgkit.home import Home

    with open_chosen_kb(name) as kb:
        if as_json:
            facts = {"name": kb.name, "path": str(kb.store.folder), "size": sum(kb.manifest.files.values())}
            write_json({**facts, **structs.asdict(kb.manifest)})
        else:
            _card(kb, Home.find().kb(kb.name).build_names())


def write_change(built: "Built", before: "Manifest") -> None:
    """Write what a KB holds after a change, and how much more or less that is.

    Args:
        built: build after the change.
        before: manifest of the build before.
    """
    new = built.manifest
    figures = ", ".join(
        f"{getattr(new, what):,} {what} ({getattr(new, what) - getattr(before, what):+,})"
        for what in ("entities", "triples", "aliases")
    )
    write_line(f"{built.name}@{built.build}: {figures}")


def _card(kb: "KnowledgeBase", builds: list[str]) -> None:
    manifest, source = kb.manifest, kb.manifest.source
    lines = {
        "source": " ".join(filter(None, (source.name, source.version, source.date))),
        "read from": source.path,
        "sha256": source.sha256,
        "licence": source.licence,
        "url": source.url,
        "builder": f"{manifest.builder} {manifest.builder_version}, kgkit {manifest.kgkit_version}",
        "options": ", ".join(f"{name} {_format_option(value)}" for name, value in manifest.options.items()),
        "created": manifest.created,
        "language": manifest.language,
        "candidates": manifest.generator,
        "identifiers": ", ".join(manifest.identifiers),
        "url pattern": manifest.url_pattern,
        "path": str(kb.store.folder),
        "other builds": ", ".join(build for build in builds if build != kb.build),
        "size": size(sum(manifest.files.values())),
        "entities": number(manifest.entities),
        "triples": number(manifest.triples),
        "aliases": number(manifest.aliases),
        "alias rows": number(manifest.alias_rows),
        "redirects": number(manifest.counts.redirects),
        "irregular forms": number(manifest.counts.forms),
        "extends": manifest.base or "",
        "added": ", ".join(source.name for source in manifest.added),
        "edited": ", ".join(source.name for source in manifest.edited),
        "retired": number(manifest.retired) if manifest.retired else "",
    }
    write_line(f"{kb.name}@{kb.build}")
    for heading, text in lines.items():
        if text:
            write_line(f"  {heading:16}{plain(text)}")
    write_line()
    write_table(
        (Column(heading="kind"), Column(heading="entities", align="right")),
        [(kind or "(none)", number(count)) for kind, count in manifest.counts.entities.items()],
    )
    write_line()
    inverses = dict(kb.store.relations)
    write_table(
        (
            Column(heading="relation"),
            Column(heading="triples", align="right"),
            Column(heading="also answered as"),
        ),
        [
            (relation, number(count), inverses.get(relation) or "")
            for relation, count in manifest.counts.relations.items()
        ],
    )
    if manifest.counts.dropped:
        write_line()
    for reason, count in manifest.counts.dropped.items():
        write_line(f"dropped: {number(count)} × {reason}")


def _format_option(option: Any) -> str:
    if isinstance(option, str):
        return option
    return " ".join(map(str, option)) if isinstance(option, list) else f"{option:,}".removesuffix(".0")
