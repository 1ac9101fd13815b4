r"""Text of WikiText-2 for a teacher to read, and the sentences of WiC that a linker must not learn from.

    python -m benchmarks.teaching_text OUT_DIR [--words 200000]
    python -m benchmarks.small_linker --home HOME --teacher LARGE --name NAME --text OUT_DIR/wiki.txt \
        --without OUT_DIR/wic.txt

trains the linker that comes with kgkit, `wsd-minilm`. A document is what stands between two headings.
`<unk>`, and the white space and the marks that the tokens of WikiText-2 have, are left out. The files must
not be passed on.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from benchmarks.english import DATA
from kgkit.files import opened

TRAIN: Final = DATA / "wikitext2" / "train.txt.xz"
WIC: Final = (DATA / "wic" / "train_part1.jsonl.xz", DATA / "wic" / "train_part2.jsonl")
MARKS: Final = (
    (" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."), ("<unk> ", ""), (" n't", "n't"), (" 's", "'s"),
    (" ,", ","), (" .", "."),
)  # fmt: skip
_PAIR: Final = re.compile(r"Word: .*?\. Sentence 1: (.*?) Sentence 2: (.*)", re.DOTALL)


def written_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, which may be compressed."""
    with opened(path) as lines:
        yield from (line.decode() for line in lines)


def plain_lines(lines: Iterable[str], words: int) -> Iterator[str]:
    """Yield lines of WikiText-2 as plain text, headings as empty lines, until there are *words* words."""
    count = 0
    for line in lines:
        text = "" if line.strip().startswith("=") else line.strip()
        for mark, plain in MARKS:
            text = text.replace(mark, plain)
        yield text
        count += len(text.split())
        if count > words:
            return


def sentences_of_wic(lines: Iterable[str]) -> list[str]:
    """Return the sentences of WiC's lines, each once, in their order.

    Raises:
        ValueError: if a line has no two sentences.
    """
    sentences: dict[str, None] = {}
    for line in lines:
        match = _PAIR.fullmatch(json.loads(line)["text"])
        if match is None:
            raise ValueError(f"no two sentences in {line[:80]!r}")
        sentences |= dict.fromkeys(match.groups())
    return [*sentences]


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teaching_text")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--words", type=int, default=200_000)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    lines = {
        "wiki.txt": plain_lines(written_lines(TRAIN), chosen.words),
        "wic.txt": sentences_of_wic(chain.from_iterable(map(written_lines, WIC))),
    }
    for name, some in lines.items():
        text = "".join(f"{line}\n" for line in some)
        (chosen.out / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.split()):,} words")


if __name__ == "__main__":
    main()
