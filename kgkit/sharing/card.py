"""The card of a pack, in Markdown: what is in it, licences, scores, the lines that use it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kgkit.models.card import CARD, file_name, model_card
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import ModelManifest
from kgkit.store.layout import Manifest
from kgkit.vectors.layout import VectorsManifest

if TYPE_CHECKING:
    from kgkit.sharing.selection import Content, Selection


def pack_card(selection: "Selection", *, licence: str, file: str) -> str:
    """Return the card of a pack.

    Args:
        selection: all that is packed.
        licence: licence of the models; empty if it is not known.
        file: name of the file of the pack.
    """
    contents = selection.contents
    titles = [f"`{content.item.title}`" for content in contents if content.item.requested]
    lines = [
        f"# {', '.join(titles)}",
        "",
        "A pack of kgkit. To use it:",
        "",
    ]
    lines += ["```sh", f"kgkit unpack {file}", "```", ""]
    if selection.encoders:
        names = ", ".join(f"`{file_name(name)}`" for name in selection.encoders)
        lines += [
            f"It needs the encoder {names}, a package or a name on the hub, which is not in it.",
            "",
        ]
    for content in contents:
        lines += _section(content, licence)
    return "\n".join(lines)


def _section(content: "Content", licence: str) -> Iterator[str]:
    """Yield the lines on something that is packed."""
    manifest, item = content.manifest, content.item
    if isinstance(manifest, Manifest):
        source = manifest.source
        yield from (f"## The knowledge base {item.name}", "")
        yield f"- {manifest.entities:,} entities, {manifest.triples:,} triples, {manifest.aliases:,} aliases"
        for each in (source, *manifest.added):
            version = f"{each.name} {each.version}".strip()
            yield f"- source: {version or 'not stated'}; licence: {each.licence or 'not stated'}"
        yield from (f"- build {manifest.build}, by kgkit {manifest.kgkit_version}", "")
        yield from ("```sh", f"kgkit link text.txt --kb {item.name}", "```", "")
    elif isinstance(manifest, VectorsManifest):
        yield from (f"## The vectors {item.name}", "")
        yield f"- {manifest.rows:,} rows of {manifest.width}, by the method {manifest.method}"
        yield from (f"- of build {manifest.build}, version {manifest.version}", "")
        kb, _, short = item.name.partition("/")
        yield from ("```sh", f"kgkit nearest KEY --kb {kb} --vectors {short}", "```", "")
    elif isinstance(manifest, ModelManifest):
        own = content.folder / CARD
        if own.is_file() and not licence:
            text = own.read_text(encoding="utf-8", errors="replace")
        else:
            text = model_card(find_kind(manifest, content.folder), manifest, licence=licence)
        yield from (f"#{line}" if line.startswith("#") else line for line in text.splitlines())
        yield ""
