"""Fonts that have the letters of a picture.

matplotlib comes with DejaVu Sans, which has no Chinese, Japanese or Korean letter, nor those of most scripts
of India. Where a picture has such letters, installed fonts are searched for them: those called Noto first,
then all others by name, as few as have them all.
"""

import logging
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from unicodedata import name as character_name

log = logging.getLogger(__name__)

BASE: Final = "DejaVu Sans"
_BOXES: Final = "Last Resort"  # a font of matplotlib's that has a box for every letter
_CJK: Final = frozenset(("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "IDEOGRAPHIC"))
_MAX_NAMED: Final = 5  # letters in a message


class FontChoice(NamedTuple):
    """Families of fonts, in the order in which letters are looked for, and the letters that none has."""

    families: tuple[str, ...]
    missing: str


def choose_fonts(texts: Iterable[str]) -> FontChoice:
    """Return the fonts of this machine that have the letters of *texts*.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    from matplotlib.font_manager import fontManager

    letters = {letter for text in texts for letter in text if letter.isprintable() and not letter.isspace()}
    fonts = [font for font in fontManager.ttflist if not font.name.startswith(_BOXES)]
    files = {font.name: font.fname for font in sorted(fonts, key=_plainest, reverse=True)}
    missing = letters - characters_of(files[BASE]) if BASE in files else letters
    families = [BASE]
    if missing:
        covered = {family: missing & characters_of(path) for family, path in files.items() if family != BASE}
        while missing and covered:
            family = min(covered, key=lambda name: (-len(covered[name] & missing), *_preference(name)))
            if not covered[family] & missing:
                break
            families.append(family)
            missing = missing - covered.pop(family)
    return FontChoice(tuple(families), "".join(sorted(missing)))


def warn_of_missing(missing: str) -> None:
    """Log once which letters no font has, and which package of Debian has them; nothing if there are none."""
    if not missing:
        return
    examples = missing[:_MAX_NAMED] + ("…" if len(missing) > _MAX_NAMED else "")
    log.warning(
        "no font of this machine has %d of the letters, which are drawn as boxes: %s; Debian's package %s "
        "has a font for them (apt install %s)",
        len(missing),
        examples,
        package := package_with(missing),
        package,
    )


def package_with(letters: str) -> str:
    """Return the package of Debian whose fonts have most of *letters*.

    Examples:
        >>> package_with("房间"), package_with("हिन्दी")
        ('fonts-noto-cjk', 'fonts-noto-core')
    """
    cjk = sum(character_name(letter, "").partition(" ")[0] in _CJK for letter in letters)
    return "fonts-noto-cjk" if 2 * cjk >= len(letters) else "fonts-noto-core"


@lru_cache(maxsize=512)
def characters_of(path: str) -> frozenset[str]:
    """Return the characters that the font in a file has; none if it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(str(Path(path))).get_charmap()))
    except (OSError, RuntimeError):
        log.debug("%s: the font cannot be read", path)
        return frozenset()


def _plainest(font: Any) -> tuple[bool, bool, str]:
    """Return what sorts the upright and normal file of a family first."""
    return font.style != "normal", str(font.weight) not in ("normal", "400", "regular", "book"), font.fname


def _preference(family: str) -> tuple[bool, str]:
    return not family.startswith("Noto Sans"), family
