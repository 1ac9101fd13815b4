"""A picture of how sure a model is and how often it is right: a reliability diagram, as SVG.

DeGroot and Fienberg (1983), "The Comparison and Evaluation of Forecasters"; Guo et al. (2017), figure 1. Each
bar stands at a confidence and is as high as the answers of that confidence are right; answers of a calibrated
model reach the diagonal. Red is what they lack of it, blue what they have beyond it. The bars below say how
many answers there are.
"""

from collections.abc import Iterator, Sequence

from kgkit.evaluation.calibration import Reliability
from kgkit.pages import drawing_file
from kgkit.text import escape_xml

_SIDE, _LOW, _MARGIN, _TOP, _GAP, _FOOT = 320, 70, 52, 64, 34, 52  # pixels
_RIGHT, _LACKS, _BEYOND, _INK, _FAINT = "#8aa0b8", "#cc6677", "#4477aa", "#1a1a1a", "#666"


def picture(curves: Sequence[tuple[str, Reliability]], *, suffix: str, title: str = "") -> bytes:
    """Draw diagrams side by side.

    Args:
        curves: what each is called, and what it shows.
        suffix: as `drawing_file` takes it.
        title: title above the diagrams.

    Returns:
        The content of the file; equal curves give equal files.

    Raises:
        UsageError: as `drawing_file` does.
    """
    drawing = "".join(_svg(curves, title))
    return drawing_file(drawing, suffix, title="Reliability", what="a reliability diagram")


def _svg(curves: Sequence[tuple[str, Reliability]], title: str) -> Iterator[str]:
    wide = len(curves) * (_MARGIN + _SIDE) + _GAP
    high = _TOP + _SIDE + _GAP // 2 + _LOW + _FOOT
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">\n'
        f'<rect width="{wide}" height="{high}" fill="white"/>\n{_text(_MARGIN, 22, title, size=15)}'
    )
    for column, (name, curve) in enumerate(curves):
        yield f'<g transform="translate({_MARGIN + column * (_MARGIN + _SIDE)} {_TOP})">\n'
        yield from _diagram(name, curve)
        yield "</g>\n"
    yield "</svg>\n"


def _diagram(name: str, curve: Reliability) -> Iterator[str]:
    total = int(curve.counts.sum())
    yield _text(0, -12, f"{name}: calibration error {100 * curve.error:.1f} %, {total:,} answers", size=13)
    most = max(1, int(curve.counts.max(initial=0)))
    width = _SIDE / len(curve.counts)
    below = _SIDE + _GAP // 2
    bars = zip(curve.confidence.tolist(), curve.accuracy.tolist(), curve.counts.tolist(), strict=True)
    for index, (sure, right, count) in enumerate(bars):
        if not count:
            continue
        x = index * width
        title = f"{count:,} answers, {100 * sure:.1f} % sure, {100 * right:.1f} % right"
        yield f"<g><title>{title}</title>\n"
        yield _bar(x, width, 0, min(right, sure), _RIGHT)
        yield _bar(x, width, min(right, sure), max(right, sure), _LACKS if sure > right else _BEYOND)
        size = _LOW * count / most
        yield _rect(x, below + _LOW - size, width, size, _RIGHT)
        yield "</g>\n"
    yield f'<path d="M0 {_SIDE}L{_SIDE} 0" stroke="{_INK}" stroke-dasharray="4 4"/>\n'
    for top, size in ((0, _SIDE), (below, _LOW)):
        yield f'<rect y="{top}" width="{_SIDE}" height="{size}" fill="none" stroke="{_FAINT}"/>\n'
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        at = _SIDE * share
        yield _text(at, below + _LOW + 16, f"{share:g}", anchor="middle")
        yield _text(-6, _SIDE - at + 4, f"{share:g}", anchor="end")
    yield _text(-6, below + 10, f"{most:,}", anchor="end")
    yield _text(_SIDE / 2, below + _LOW + 36, "how sure: the score of the answer", anchor="middle")
    yield f'<g transform="rotate(-90)">{_text(-_SIDE / 2, -34, "how many are right", anchor="middle")}</g>\n'
    filled = curve.counts > 0
    meanings = {_LACKS: "surer than right", _BEYOND: "more right than sure"}
    shown = {_LACKS if more else _BEYOND for more in (curve.confidence > curve.accuracy)[filled].tolist()}
    for row, (colour, meaning) in enumerate((colour, meanings[colour]) for colour in sorted(shown)):
        yield _rect(10, 12 + 18 * row, 12, 12, colour)
        yield _text(28, 22 + 18 * row, meaning)


def _bar(x: float, width: float, low: float, high: float, colour: str) -> str:
    return _rect(x, _SIDE * (1 - high), width, _SIDE * (high - low), colour)


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x + 1:.2f}" y="{y:.2f}" width="{width - 2:.2f}" height="{height:.2f}" fill="{colour}"/>\n'
    )


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    content = escape_xml(text)
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{content}</text>\n'
