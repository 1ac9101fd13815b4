"""`kgkit kb diff`: what sets two knowledge bases apart, or two builds of one."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, QuietOption, opened
from kgkit.commands.output import plain, write_bytes, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.kb import Difference, KnowledgeBase

_SIGN = {"added": "+", "removed": "-", "changed": "~"}


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="NAME or NAME@BUILD.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="NAME or NAME@BUILD.")],
    summary: Annotated[
        bool, typer.Option("--summary", metavar="", help="Only how many differences there are of each kind.")
    ] = False,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", metavar="", help="Write a JSON object for each difference.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", metavar="", help="Exit with 1 if they differ.")
    ] = False,
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Compare two knowledge bases, or two builds of one: entities, aliases, triples, redirects.

    A line each: + what only NEW has, - what only OLD has, ~ what they have differently.
    """
    import msgspec

    from kgkit.kb import differences

    if summary and as_jsonl:
        raise UsageError("--summary or --jsonl: one of them, not both")
    with opened(old, home) as before, opened(new, home) as after:
        counts: Counter[tuple[str, str]] = Counter()
        for found in differences(before, after):
            counts[found.what, found.change] += 1
            if as_jsonl:
                write_bytes(msgspec.json.encode(_described(found)) + b"\n")
            elif not summary:
                write_line(f"{_SIGN[found.change]} {found.what} {plain(_told(found))}")
        traits = _traits(before, after)
        for name, (was, now) in traits.items():
            if as_jsonl:
                told = {"change": "changed", "what": "trait", "name": name, "old": was, "new": now}
                write_bytes(msgspec.json.encode(told) + b"\n")
            else:
                write_line(f"~ {name}: {_or_none(was)} → {_or_none(now)}")
        if summary:
            for (what, change), count in sorted(counts.items()):
                write_line(f"{_SIGN[change]} {count:,} × {what}")
        if not counts and not traits:
            Messages(quiet=quiet).say(
                f"{before.name}@{before.build} and {after.name}@{after.build} hold the same"
            )
    if exit_code and (counts or traits):
        raise typer.Exit(1)


def _described(found: "Difference") -> dict[str, Any]:
    from kgkit.types import Entity

    def shown(record: Any) -> Any:
        if isinstance(record, Entity):
            return {name: value for name, value in record.to_dict().items() if name != "id"}
        return record

    return {"change": found.change, "what": found.what, "old": shown(found.old), "new": shown(found.new)}


def _told(found: "Difference") -> str:
    """Return a difference as a line for people."""
    from kgkit.types import Alias, Entity, Form, Occurrences, Redirect, Triple

    record = found.new or found.old
    match record:
        case Entity():
            if not isinstance(found.old, Entity) or not isinstance(found.new, Entity):
                return f"{record.key}: {record.label}"
            was, now = found.old.to_dict(), found.new.to_dict()
            return f"{record.key}: " + "; ".join(
                f"{name} {was[name]!r} → {now[name]!r}" for name in was if was[name] != now[name]
            )
        case Alias():
            if isinstance(found.old, Alias) and isinstance(found.new, Alias):
                return f"{record.surface!r} → {record.key}: {_counted(found.old)} → {_counted(found.new)}"
            return f"{record.surface!r} → {record.key}: {_counted(record)}"
        case Triple():
            return f"{record.subject} {record.relation} {record.object}"
        case Redirect():
            was_to = f"{found.old.target} → " if isinstance(found.old, Redirect) and found.new else ""
            return f"{record.source} → {was_to}{record.target}"
        case Form():
            return f"{record.surface!r}: {record.lemma} ({record.pos})"
        case Occurrences():
            if isinstance(found.old, Occurrences) and isinstance(found.new, Occurrences):
                return f"of {record.surface!r}: {_linked(found.old)} → {_linked(found.new)}"
            return f"of {record.surface!r}: {_linked(record)}"
    raise AssertionError(record)


def _counted(alias: Any) -> str:
    return f"{alias.count:g}" + (f", {alias.sense}" if alias.sense else "")


def _linked(told: Any) -> str:
    return f"{told.linked:g} of {told.count:g} linked"


def _traits(old: "KnowledgeBase", new: "KnowledgeBase") -> dict[str, tuple[Any, Any]]:
    """Return what differs beside the records: what the builds were told, and inverses of common relations."""
    names = ("smoothing", "generator", "language")
    both = {name: (getattr(old.manifest, name), getattr(new.manifest, name)) for name in names}
    before, after = dict(old.store.relations), dict(new.store.relations)
    both |= {
        f"inverse of {name}": (inverse, after[name]) for name, inverse in before.items() if name in after
    }
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def _or_none(value: Any) -> str:
    return "(none)" if value in ("", None) else str(value)
