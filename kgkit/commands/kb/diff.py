"""`kgkit kb diff`: differences between two knowledge bases, or two builds of one."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.messages import Messages
from kgkit.commands.options import flag
from kgkit.commands.output import plain, write_bytes, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.kb import Difference, KnowledgeBase

_SIGN = {"added": "+", "removed": "-", "changed": "~"}


def diff(
    old: Annotated[
        str, typer.Argument(metavar="OLD", autocompletion=complete_kb, help="NAME or NAME@BUILD.")
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="NEW",
            autocompletion=complete_kb,
            help="NAME or NAME@BUILD; left out: OLD, compared with its build before.",
        ),
    ] = None,
    summary: Annotated[
        bool, flag("--summary", help="Show only the number of differences of each kind.")
    ] = False,
    as_jsonl: Annotated[bool, flag("--jsonl", help="Write a JSON object for each difference.")] = False,
    exit_code: Annotated[bool, flag("--exit-code", help="Exit with 1 if they differ.")] = False,
) -> None:
    """Compare two knowledge bases, or two builds of one: entities, aliases, triples, redirects.

    A line each: + is only in NEW, - only in OLD, ~ differs.
    """
    import msgspec

    from kgkit.kb import differences, open_kb
    from kgkit.kb.differences import previous_build

    if summary and as_jsonl:
        raise UsageError("--summary or --jsonl: one of them, not both")
    if new is None:
        name = old.partition("@")[0]
        old, new = previous_build(name) if old == name else old, name
    with open_kb(old) as before, open_kb(new) as after:
        counts: Counter[tuple[str, str]] = Counter()
        for difference in differences(before, after):
            counts[difference.what, difference.change] += 1
            if as_jsonl:
                write_bytes(msgspec.json.encode(_as_dict(difference)) + b"\n")
            elif not summary:
                write_line(f"{_SIGN[difference.change]} {difference.what} {plain(_as_line(difference))}")
        settings = _changed_settings(before, after)
        for name, (was, now) in settings.items():
            if as_jsonl:
                record = {"change": "changed", "what": "trait", "name": name, "old": was, "new": now}
                write_bytes(msgspec.json.encode(record) + b"\n")
            else:
                write_line(f"~ {name}: {_or_none(was)} → {_or_none(now)}")
        if summary:
            for (what, change), count in sorted(counts.items()):
                write_line(f"{_SIGN[change]} {count:,} × {what}")
        if not counts and not settings:
            Messages().write(f"{before.name}@{before.build} and {after.name}@{after.build} hold the same")
    if exit_code and (counts or settings):
        raise typer.Exit(1)


def _as_dict(difference: "Difference") -> dict[str, Any]:
    from kgkit.types import Entity

    def shown(record: Any) -> Any:
        if isinstance(record, Entity):
            return {name: value for name, value in record.to_dict().items() if name != "id"}
        return record

    return {
        "change": difference.change,
        "what": difference.what,
        "old": shown(difference.old),
        "new": shown(difference.new),
    }


def _as_line(difference: "Difference") -> str:
    """Return a difference as a line for people."""
    from kgkit.types import Alias, Entity, Form, Occurrences, Redirect, Triple

    old: Any = difference.old
    new: Any = difference.new
    record = new or old

    def shown(show: Callable[[Any], str]) -> str:
        return f"{show(old)} → {show(new)}" if old and new else show(record)

    match record:
        case Entity() if old and new:
            was, now = old.to_dict(), new.to_dict()
            return f"{record.key}: " + "; ".join(
                f"{name} {was[name]!r} → {now[name]!r}" for name in was if was[name] != now[name]
            )
        case Entity():
            return f"{record.key}: {record.label}"
        case Alias():
            return f"{record.surface!r} → {record.key}: {shown(_format_count)}"
        case Triple():
            return f"{record.subject} {record.relation} {record.object}"
        case Redirect():
            return f"{record.source} → {shown(lambda redirect: redirect.target)}"
        case Form():
            return f"{record.surface!r}: {record.lemma} ({record.pos})"
        case Occurrences():
            return f"of {record.surface!r}: {shown(_format_occurrences)}"
    raise AssertionError(record)


def _format_count(alias: Any) -> str:
    return f"{alias.count:g}" + (f", {alias.sense}" if alias.sense else "")


def _format_occurrences(occurrences: Any) -> str:
    return f"{occurrences.linked:g} of {occurrences.count:g} linked"


def _changed_settings(old: "KnowledgeBase", new: "KnowledgeBase") -> dict[str, tuple[Any, Any]]:
    """Return the settings of the builds that differ, and the inverses of common relations that do."""
    names = ("smoothing", "generator", "language")
    both = {name: (getattr(old.manifest, name), getattr(new.manifest, name)) for name in names}
    before, after = dict(old.store.relations), dict(new.store.relations)
    both |= {
        f"inverse of {name}": (inverse, after[name]) for name, inverse in before.items() if name in after
    }
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def _or_none(value: Any) -> str:
    return "(none)" if value in ("", None) else str(value)
