"""A picture of tagged texts: one HTML page with the probabilities of the types of each word."""

from collections.abc import Iterator, Sequence
from typing import Final

from kgkit.tagging.mention_tagger import TypedWord
from kgkit.text import escape_xml
from kgkit.types import Document

_CERTAIN: Final = 0.98  # of no name: such a word is drawn plain


def typed_section(
    document: Document, words: Sequence[TypedWord], types: Sequence[str], model: str
) -> Iterator[str]:
    """Yield the part of a page that shows *document*, in small pieces; see `kgkit.drawing.links.page_head`.

    A word has the colour of its likeliest type, which a legend names, and a line below it where that is part
    of a name; its probabilities appear at the foot of the page when the pointer, or the focus, is on it.

    Args:
        document: text that was tagged.
        words: its words, in order.
        types: K names of types.
        model: name of the tagger.
    """
    heading = f"{document.id} · {model}"
    yield f"<h2>{escape_xml(heading)}</h2>\n"
    hues = [_hue(number, types) for number in range(len(types))]
    names = "".join(
        f'<span style="--hue:{hue}">{escape_xml(name)}</span>' for hue, name in zip(hues, types, strict=True)
    )
    yield f'<p class="legend">{names}</p>\n<div class="text">'
    at = 0
    for word in words:
        yield escape_xml(document.text[at : word.start])
        text = escape_xml(document.text[word.start : word.end])
        yield text if word.probabilities[0] >= _CERTAIN else _anchor(text, word, types)
        at = word.end
    yield escape_xml(document.text[at:])
    yield "</div>\n"


def _anchor(text: str, word: TypedWord, types: Sequence[str]) -> str:
    kind = word.likeliest()
    type_number = kind or max(range(1, len(word.probabilities)), key=word.probabilities.__getitem__)
    hue = _hue(type_number - 1, types)
    title = types[kind - 1] if kind else "no name"
    rows = "".join(
        f'<tr><td class="n">{share:.3f}</td><td>{escape_xml(name)}</td></tr>'
        for name, share in zip(("no name", *types), word.probabilities, strict=True)
    )
    head = '<tr><td class="n">probability</td><td>type</td></tr>'
    card = f"<b>{escape_xml(title)}</b><table>{head}{rows}</table>"
    return (
        f'<a class="{"link" if kind else "link word"}" tabindex="0" '
        f'style="--hue:{hue};--score:{word.probabilities[type_number]:.2f}">{text}'
        f'<span class="card">{card}</span></a>'
    )


def _hue(number: int, types: Sequence[str]) -> int:
    """Return the hue, in degrees, of a type by its number among the types of names."""
    return 360 * number // len(types)
