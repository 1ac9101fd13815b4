"""Lines of a file of edits: what is to become of entities that a knowledge base has.

An object a line, an entity a line, with the fields that the builder `jsonl` has, and three more:

    key             which entity: its own key
    label, description, kind, pos, types    what they are from now on
    attributes      some of them: those that are named are replaced, null withdraws one
    aliases         further surfaces, or the count and sense of one that is there
    remove_aliases  surfaces that are withdrawn, as they are spelled
    remove_facts    facts that are withdrawn: relation and object
    retire          true: the entity goes, with its aliases and facts

The first line may be `{"kgkit": {…}}`: name, version, licence, url and date of the edits, `label_aliases`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kgkit.building.attributes import check_attributes
from kgkit.building.contract import MAX_COUNT
from kgkit.building.json_lines import LINE_ERRORS, EntityFields, json_problem
from kgkit.errors import SourceError
from kgkit.files import text_lines
from kgkit.store import SourceInfo
from kgkit.versions import file_sha256

__all__ = ["EditedAlias", "EntityEdit", "FactOfEntity", "read_edits"]

REPLACED: Final = ("label", "description", "kind", "pos", "types")
"""Fields of an entity that an edit replaces."""

_ADDITIONS: Final = ("alias", "form", "linked", "occurrences", "redirect", "subject", "surface")


class EditHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the first line may say of the whole.

    Attributes:
        label_aliases: whether a new label is an alias of its entity, too.
    """

    name: str = ""
    version: str = ""
    licence: str = ""
    url: str = ""
    date: str = ""
    label_aliases: bool = True


class EditedAlias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A surface that an entity gets, or has; a count or sense that is not given stays, or is none."""

    text: str
    count: float | None = None
    sense: str | None = None


class FactOfEntity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact, where it stands with its subject."""

    relation: str
    object: str


class EntityEdit(EntityFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line: what is to become of one entity; the module's docstring explains the fields."""

    aliases: list[str | EditedAlias] | None = None
    remove_aliases: list[str] | None = None
    remove_facts: list[FactOfEntity] | None = None
    retire: bool | None = None
    kgkit: EditHead | None = None

    def given_fields(self) -> list[str]:
        """Return the names of the fields that the line has, but for the key."""
        return [name for name in self.__struct_fields__ if name != "key" and getattr(self, name) is not None]

    def all_aliases(self, label_aliases: bool) -> Iterator[EditedAlias]:
        """Yield the surfaces that the entity gets, or has, the new label among them if *label_aliases*."""
        given = [EditedAlias(alias) if isinstance(alias, str) else alias for alias in self.aliases or ()]
        yield from given
        if label_aliases and self.label and self.label not in [alias.text for alias in given]:
            yield EditedAlias(self.label)


_decode: Final = msgspec.json.Decoder(EntityEdit).decode
_FIELDS: Final = sorted(
    {name for line in (EntityEdit, EditHead, EditedAlias) for name in line.__struct_fields__}
)


def read_edits(path: Path, take: Callable[[EntityEdit, list[EditedAlias]], None]) -> SourceInfo:
    """Pass the edit of every line to *take*, with the surfaces it gives; blank lines are passed over.

    Args:
        path: file of JSON lines, compressed if its name ends so.
        take: function that takes an edit, and raises `ValueError` for one that it cannot follow.

    Returns:
        What the file says of itself, with its path and checksum.

    Raises:
        NotThere: if there is no file.
        SourceError: at the first line that cannot be followed; with its number.
    """
    head, checksum = EditHead(), ""
    lines_of: dict[str, int] = {}
    for number, text in text_lines(path):
        if text.isspace():
            continue
        checksum = checksum or file_sha256(path)
        try:
            edit = _decode(text)
            if edit.kgkit is not None:
                head = _head(edit, number)
                continue
            aliases = [*edit.all_aliases(head.label_aliases)]
            key = _check(edit, aliases)
            if (earlier := lines_of.setdefault(key, number)) != number:
                raise ValueError(f"line {earlier} edits {key!r} as well: one line says all of an entity")
            take(edit, aliases)
        except LINE_ERRORS as error:
            raise SourceError(_problem(error), path=path, line=number, text=text) from None
    return SourceInfo(
        name=head.name or path.name.split(".")[0], version=head.version, licence=head.licence, url=head.url,
        date=head.date, path=str(path.absolute()), sha256=checksum or file_sha256(path),
    )  # fmt: skip


def _problem(error: Exception) -> str:
    text = json_problem(error, _FIELDS)
    if any(text.startswith(f"there is no field {name!r}") for name in _ADDITIONS):
        return (
            f"{text.partition(';')[0]} in a file of edits: `kgkit kb add` takes such lines; "
            "'remove_aliases' and 'remove_facts' of an entity withdraw its aliases and facts"
        )
    return text


def _head(edit: EntityEdit, number: int) -> EditHead:
    assert edit.kgkit is not None
    if number > 1:
        raise ValueError("'kgkit' belongs on the first line only")
    if edit.key is not None or len(edit.given_fields()) > 1:
        raise ValueError("'kgkit' stands on a line of its own")
    return edit.kgkit


def _check(edit: EntityEdit, aliases: list[EditedAlias]) -> str:
    """Return the key of an edit; see that it says something, and nothing against itself."""
    if not edit.key:
        raise ValueError(
            f"'key' is {'empty' if edit.key == '' else 'missing'}: it says which entity the line edits"
        )
    fields = edit.given_fields()
    if not fields:
        raise ValueError(f"says nothing about {edit.key!r} that could change")
    if edit.retire is False:
        raise ValueError("'retire' is false: leave it out, entities stay unless it is true")
    if edit.retire and len(fields) > 1:
        others = " and ".join(repr(name) for name in fields if name != "retire")
        raise ValueError(f"has 'retire' and {others}: an entity that goes is not changed")
    removed = edit.remove_aliases or []
    for alias in aliases:
        if not alias.text:
            raise ValueError("one of the 'aliases' is empty")
        if alias.text in removed:
            field = "aliases" if edit.aliases and alias.text in _texts(edit) else "label"
            raise ValueError(f"{alias.text!r} is in 'remove_aliases', and in {field!r}, which adds it")
        if alias.count is not None and not 0 <= alias.count <= MAX_COUNT:
            raise ValueError(f"the count is {alias.count:g}: counts lie between 0 and {MAX_COUNT:g}")
    if repeated := next((text for text in _texts(edit) if _texts(edit).count(text) > 1), None):
        raise ValueError(f"{repeated!r} comes twice in 'aliases'")
    if edit.attributes:
        check_attributes(edit.attributes)
    return edit.key


def _texts(edit: EntityEdit) -> list[str]:
    return [alias if isinstance(alias, str) else alias.text for alias in edit.aliases or ()]
