"""The words of templates: the text of `{{lang|fr|mot}}`, `{{convert|5|km|mi}}`, `{{SMS|Emden|1908|6}}`.

Templates are not expanded. `template_tables` has those whose text is made of their arguments. One that is not
there, or lacks an argument, leaves the mark `HOLE`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Final, NamedTuple

from kb_builders.wikipedia.languages import base, months, number_marks
from kb_builders.wikipedia.template_tables import (
    BETWEEN,
    EVERYWHERE,
    FAMILIES,
    MUSIC,
    POWERS,
    RECORDING,
    SMALLER_UNITS,
    TABLES,
    UNITS,
)

__all__ = ["CUT", "HOLE", "SOUND", "Templates", "hide", "show"]

CUT: Final = "\x01"
"""Mark of something without words."""

HOLE: Final = "\x12"
"""Mark of words that are not known."""

SOUND: Final = "\x13"
"""Mark of a pronunciation, which is not read; it may stand behind the word that it is of."""

_MARKUP: Final = "[]{}|<>'#*=:\n"
_HIDDEN: Final = "".join(map(chr, (2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17)))

hide: Final = str.maketrans(_MARKUP, _HIDDEN)
"""Characters that stand for markup that is none, as that within `<nowiki>`; `CUT` is before them."""

show: Final = str.maketrans(_HIDDEN, _MARKUP, CUT)
"""Markup for these characters, nothing for `CUT`."""

_DEPTH: Final = 40  # of templates within templates that are read
_LONGEST_NAME: Final = 200
_TEMPLATE: Final = re.compile(r"\{\{([^{}]*+(?:(?:\{(?!\{)|\}(?!\}))[^{}]*+)*+)\}\}")
_PREFIX: Final = re.compile(
    r"(?:template|t|vorlage|modèle|plantilla|predefinição|шаблон|szablon|sjabloon|šablona|mall|模板|틀|"
    r"subst|safesubst) *:",
    re.IGNORECASE,
).match
_BARS: Final = re.compile(r"\[\[|-\{|\]\]|\}-|\|")
_ALTERNATIVES: Final = re.compile(r" ‖ ?")
_PIECES: Final = re.compile(r"\{([^{}:]+)(:n)?\}|\[([^\[\]]+)\]")
_BLOCK: Final = re.compile(r"\n[ \t]*[*#:;{|!]").search
_NUMBER: Final = re.compile(r"([-+−]?)(0|[1-9][0-9]{0,30})(?:\.([0-9]{1,30}))?").fullmatch
_QUANTITY: Final = re.compile(r"[-+−]?[0-9][0-9.,/+⁄ ]{0,30}(?:e[-+]?[0-9]{1,3})?").fullmatch
_UNIT: Final = re.compile(r"(e3|e6|e9|e12)?([^\s\[\]<>\x01\x12][^\[\]<>\x01\x12]{0,30})").fullmatch
_ROMAN: Final = re.compile("[IVX]{1,9}").fullmatch
_SPACE: Final = " \t\n\r"


class _Field(NamedTuple):
    names: tuple[str, ...]
    is_number: bool


_Piece = str | _Field | tuple["_Piece", ...]
_Pattern = tuple[tuple[_Piece, ...], ...]
Arguments = Mapping[str, str]


class _Call(NamedTuple):
    """A template with its arguments, in a wiki of a language."""

    name: str
    arguments: Arguments
    language: str

    def get(self, *names: str) -> str:
        """Return the first argument of these that is not empty."""
        for name in names:
            value = self.arguments.get(name, "")
            if value and not value.isspace():
                return value
        return ""

    def values(self) -> list[str]:
        """Return the arguments without a name."""
        values: list[str] = []
        while (value := self.arguments.get(str(len(values) + 1))) is not None:
            values.append(value.strip(_SPACE))
        return values


class Templates:
    """The templates of the wikis of one language, whose tag it is without script and region."""

    def __init__(self, language: str) -> None:
        self.language = base(language)
        self._patterns: dict[str, _Pattern | str | None] = {}

    def read(self, text: str) -> str:
        """Return wikitext with the words of its templates; what is not closed, or nested too deep, stays."""
        for _ in range(_DEPTH):
            if "{{" not in text:
                break
            text, number = _TEMPLATE.subn(self._words, text)
            if not number:
                break
        return text

    def _words(self, template: re.Match[str]) -> str:
        name, bar, rest = template[1].partition("|")
        if ":" in name:
            if prefix := _PREFIX(name.lstrip(_SPACE)):
                name = name.lstrip(_SPACE)[prefix.end() :]
            else:  # a function of the parser: its first argument stands behind the colon
                name, _, first = name.partition(":")
                name, bar, rest = f"{name}:", "|", f"{first}{bar}{rest}"
        if len(name) > _LONGEST_NAME:
            return HOLE
        try:
            pattern = self._patterns[name]
        except KeyError:
            pattern = self._remember(name)
        if pattern is None:
            return HOLE
        if not pattern:
            return CUT
        call = _Call(name, _arguments(rest) if bar else {}, self.language)
        words = _FUNCTIONS[pattern](call) if isinstance(pattern, str) else _fill(pattern, call)
        if "\n" in words:
            words = HOLE if _BLOCK(words) else words.replace("\n", " ")
        return words

    def _remember(self, written: str) -> _Pattern | str | None:
        name = _first_letter_small(" ".join(written.replace("_", " ").strip(f"{_SPACE}{CUT}").split(" ")))
        table = _table(self.language)
        pattern = table.get(name, table.get(name.lower()))  # redirects differ by capitals: `NoWrap`
        if pattern is None:
            for language, family, its_pattern in FAMILIES:
                if language in ("", self.language) and re.fullmatch(family, name):
                    pattern = _compiled(its_pattern)
                    break
        if len(self._patterns) > 50_000:
            self._patterns.clear()
        self._patterns[written] = pattern
        return pattern


def _first_letter_small(name: str) -> str:
    return name[:1].lower() + name[1:]


@cache
def _table(language: str) -> Mapping[str, _Pattern | str]:
    """Return the patterns of the templates of a language by name."""
    table: dict[str, _Pattern | str] = {}
    for patterns in (EVERYWHERE, TABLES.get(language, {})):
        for pattern, names in patterns.items():
            table.update(dict.fromkeys(map(_first_letter_small, names.split("|")), _compiled(pattern)))
    return table


@cache
def _compiled(pattern: str) -> _Pattern | str:
    if len(pattern) > 1 and pattern[0] == "=":
        return pattern
    if not pattern:
        return ()
    return tuple(tuple(_pieces(alternative)) for alternative in _ALTERNATIVES.split(pattern))


def _pieces(pattern: str) -> Iterator[_Piece]:
    at = 0
    for match in _PIECES.finditer(pattern):
        if at < match.start():
            yield _literal(pattern[at : match.start()])
        yield _Field(tuple(match[1].split("|")), bool(match[2])) if match[1] else tuple(_pieces(match[3]))
        at = match.end()
    if at < len(pattern):
        yield _literal(pattern[at:])


def _literal(text: str) -> str:
    """Return text that is no markup: apostrophes would be bold type, and `=` the end of a name."""
    hidden = text if text == "|" else text.translate(hide)
    return text if hidden == text else f"{CUT}{hidden}"


def _arguments(text: str) -> Arguments:
    arguments: dict[str, str] = {}
    position = 0
    for part in _parts(text):
        name, equals, value = part.partition("=")
        if equals and len(name) < 100 and not any(mark in name for mark in "[<{"):
            arguments[name.strip(_SPACE)] = value.strip(_SPACE)
        else:
            position += 1
            arguments[str(position)] = part
    return arguments


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between the bars that are not within a link."""
    if "[[" not in text and "-{" not in text:
        yield from text.split("|")
        return
    at = depth = 0
    for match in _BARS.finditer(text):
        if match[0] != "|":
            depth = max(0, depth + (1 if match[0] in ("[[", "-{") else -1))
        elif not depth:
            yield text[at : match.start()]
            at = match.end()
    yield text[at:]


def _fill(pattern: _Pattern, call: _Call) -> str:
    for alternative in pattern:
        words = _filled(alternative, call, strip=len(alternative) > 1)
        if words is not None:
            return words or CUT
    return HOLE


def _filled(pieces: tuple[_Piece, ...], call: _Call, *, strip: bool) -> str | None:
    words = []
    for piece in pieces:
        if isinstance(piece, str):
            words.append(piece)
        elif isinstance(piece, _Field):
            value = call.get(*piece.names)
            if not value:
                return None
            if strip:
                value = value.strip(_SPACE)
            words.append(_number(value.strip(_SPACE), call.language) if piece.is_number else value)
        else:
            words.append(_filled(piece, call, strip=True) or "")
    return "".join(words)


# -- functions ----------------------------------------------------------------------------------------------


def _number(value: str, language: str) -> str:
    """Return a number as it is written in a language."""
    group, point = number_marks(language)
    match = _NUMBER(value.replace(",", ".") if point == "," else value)
    if match is None:
        return value
    return f"{match[1]}{int(match[2]):,}".replace(",", group) + (f"{point}{match[3]}" if match[3] else "")


def _join(call: _Call) -> str:
    return "".join(call.values()) or HOLE


def _measure(call: _Call) -> str:
    """Return a quantity with its unit, as it is given: a range, and feet with inches, too."""
    given = [*call.values(), "", "", ""]
    words, at, unit = "", 0, ""
    grouping = "," if number_marks(call.language)[1] == "." else " "
    while _QUANTITY(given[at]):
        words += _number(given[at].replace(grouping, ""), call.language).replace("+", " ")
        if given[at + 1] in BETWEEN and _QUANTITY(given[at + 2]):
            words += BETWEEN[given[at + 1]]
            at += 2
            continue
        match = _UNIT(given[at + 1])
        if match is None:
            return words if unit or not given[at + 1] else HOLE
        unit = UNITS.get(match[2], match[2])
        words += ("" if unit[0] in "°/" else " ") + POWERS.get(match[1], "") + unit
        at += 2
        if given[at + 1] not in SMALLER_UNITS:
            break
        words += " "
    return words.strip() or HOLE


def _date(call: _Call, *, day_first: bool = False) -> str:
    """Return a date, given as year, month and day or the other way round, or as a text."""
    given = [*call.values(), "", "", ""]
    year, month, day = given[:3]
    if not (year.isdecimal() and len(year) > 2):
        day, month, year = given[:3]
    names = months(call.language)
    if month.isdecimal() and len(month) < 3:
        month = names[int(month) - 1] if 0 < int(month) <= len(names) else ""
    if day.isdecimal() and len(day) < 3:
        day = str(int(day))
    if call.language == "en" and day and month and not (day_first or call.get("df").startswith("y")):
        return f"{month} {day}, {year}"
    if day.isdecimal() and call.language in ("cs", "de"):
        day += "."
    if call.language == "fr" and day == "1":
        day = "1er"
    between = " de " if call.language in ("es", "pt") else " "
    return between.join(filter(None, (day, month, year))) or HOLE


def _as_of(call: _Call) -> str:
    date = call.get("alt") or _date(call, day_first=True)
    if date == HOLE or call.get("alt"):
        return date
    start = "since" if call.get("since") else "as of"
    return f"{start if call.get('lc') else start.capitalize()} {date}"


def _ship(call: _Call) -> str:
    """Return the name of a ship: of a number behind it 4 is the prefix, 2 the name, 1 the hull number."""
    return _named_ship(call.name.strip(_SPACE), *[*call.values(), "", "", ""][:3])


def _other_ship(call: _Call) -> str:
    prefix, *others = [*call.values(), "", "", "", ""][:4]
    return _named_ship(prefix, *others)


def _named_ship(prefix: str, name: str, number: str, shown: str) -> str:
    if not name:
        return HOLE
    parts = int(shown) if shown in ("1", "2", "3", "4", "5", "6") else 7
    words = [prefix] * (parts & 4 > 0) + [name] * (parts & 2 > 0)
    if parts & 1 and number:
        words.append(f"({number})" if parts & 2 else number)
    return " ".join(filter(None, words))


def _ship_class(call: _Call) -> str:
    name, kind, shown = [*call.values(), "", "", ""][:3]
    if not name:
        return HOLE
    if shown == "1":
        return f"{name} class"
    return f"{name}-class" if shown == "2" else f"{name}-class {kind}".rstrip()


def _music(call: _Call) -> str:
    return MUSIC.get(call.get("1").strip(_SPACE), HOLE)


def _name(call: _Call) -> str:
    return f"{call.name.strip(_SPACE)} {call.get('1').strip(_SPACE)}".rstrip()


def _sound(_call: _Call) -> str:
    return f"{CUT}{SOUND}"


def _audio(call: _Call) -> str:
    """Return the words that a recording is of; `Aussprache` is none."""
    words = call.get("2").strip(_SPACE)
    return f"{CUT}{SOUND}" if words.lower().strip("?") in RECORDING else words


def _icon(call: _Call) -> str:
    """Return nothing for the name of a language, `{{fr}}`, which stands before a word of it."""
    return HOLE if call.arguments else CUT


def _coordinates(call: _Call) -> str:
    """Return a hole for coordinates in the text, and nothing for those beside the title."""
    return HOLE if "inline" in (call.get("display") or "inline") else CUT


def _unit(call: _Call) -> str:
    """Return the French `unité`: a number, then units and their powers in turn."""
    number, *units = [*call.values(), ""]
    words = _number(number, call.language)
    if upper := call.get("à"):
        words += f" à {_number(upper, call.language)}"
    if power := call.get("e"):
        words += f"×10^{power}"
    powers = map("".join, zip(units[::2], [*units[1::2], ""], strict=False))
    return " ".join(filter(None, (words, "⋅".join(filter(None, powers))))) or HOLE


def _century(call: _Call, after: str = "") -> str:
    number = call.get("1").strip(_SPACE)
    if not number:
        return HOLE
    return f"{number}{call.get('2').strip(_SPACE) or ('er' if number == 'I' else 'e')} siècle{after}"


def _centuries(call: _Call, after: str = "", between: str = " ", plural: str = "") -> str:
    """Return centuries with the words between them: `XIX|e|au|XX|e`, `VI|-|VII|s`."""
    words: list[str] = []
    for value in call.values():
        if value == "s":
            plural = "s"
        elif _ROMAN(value):
            words.append(f"{value}{'er' if value == 'I' else 'e'}")
        elif value not in ("", "e", "er"):
            words.append(value)
    return f"{between.join(words)} siècle{plural}{after}" if words else HOLE


_BEFORE_CHRIST: Final = " av. J.-C."
_FUNCTIONS: Final[Mapping[str, Callable[[_Call], str]]] = {
    "=join": _join,
    "=measure": _measure,
    "=date": _date,
    "=as of": _as_of,
    "=ship": _ship,
    "=other ship": _other_ship,
    "=ship class": _ship_class,
    "=music": _music,
    "=name": _name,
    "=sound": _sound,
    "=audio": _audio,
    "=coordinates": _coordinates,
    "=icon": _icon,
    "=unité": _unit,
    "=siècle": _century,
    "=siècle av": partial(_century, after=_BEFORE_CHRIST),
    "=siècles": _centuries,
    "=siècles av": partial(_centuries, after=_BEFORE_CHRIST),
    "=siècles et": partial(_centuries, between=" et ", plural="s"),
    "=siècles et av": partial(_centuries, after=_BEFORE_CHRIST, between=" et ", plural="s"),
}
