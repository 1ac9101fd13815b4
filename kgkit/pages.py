"""Drawings as files: SVG by itself, or in a page that needs nothing else."""

from typing import Final

from kgkit.errors import UsageError

SUFFIXES: Final = (".svg", ".html")


def drawing_file(drawing: str, suffix: str, *, title: str, what: str) -> bytes:
    """Return the content of a file with a drawing, in UTF-8.

    Args:
        drawing: element `svg`.
        suffix: `.svg`, or `.html` for a page.
        title: title of the page.
        what: name of what is drawn, for the error: `a tree`.

    Raises:
        UsageError: if there is no such format.
    """
    if suffix.lower() not in SUFFIXES:
        raise UsageError(f"{what} cannot be {suffix or 'without a suffix'}; it can be {', '.join(SUFFIXES)}")
    if suffix.lower() == ".svg":
        return drawing.encode()
    head = f'<meta charset="utf-8">\n<title>{title}</title>'
    page = f"<head>\n{head}\n</head>\n<body>\n{drawing}</body>\n"
    return f'<!DOCTYPE html>\n<html lang="en">\n{page}</html>\n'.encode()
