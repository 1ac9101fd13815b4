"""Word senses from plain text, with nothing given: words found, spans and senses, scored end to end.

    python -m benchmarks.raw_senses --home HOME --model wsd-minilm [--set semeval2007]

The words of the five sets are written as one writes them, sentence after sentence, and linked as
`kgkit link --model MODEL` does: nothing is given. `kgkit evaluate wsd` and `benchmarks.senses` have the other
figure, of gold lemmas and parts of speech.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import kgkit
from benchmarks.report import Table
from benchmarks.senses import DATA, FIVE
from kgkit.evaluation.wsd import POS, plain_key, read_gold
from kgkit.files import opened
from kgkit.linking import Linker
from kgkit.types import Document, Link

CONTENT: Final = {**POS, "NUM": "a"}
BY_KEY: Final = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
"""Parts of speech by the digit behind the lemma in a sense key."""

OPENING: Final = frozenset("“ ( [ { $ # £".split())
CLOSING: Final = re.compile(r"[”)\]}.,:;?!%…]+|'(?:s|S|m|d|ll|re|ve)?|n't|N'T")
QUOTES: Final = {"``": "“", "''": "”", "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}

NOTES: Final = """
The five sets as plain text, without lemmas, parts of speech and spans; figures in per cent. `found`: the
instances whose span is linked, exactly as long as it is. `pos`: the found whose link has the right part of
speech; `sense`: the found whose sense is right, and `sense of right pos`, of those alone whose part of speech
is right. `R`: instances with the right span and sense; `P`: such links of those that overlap an instance;
`F1` of both. Links elsewhere have no gold, since a set annotates some words only; `function words` are links
per 100 words that the data tag as neither noun, verb, adjective, adverb nor number.
"""


class Token(NamedTuple):
    """A token of a data set.

    Attributes:
        start, end: code points of the text that is linked.
        pos: part of speech, as WordNet abbreviates it; empty for function words and marks.
        lemma: lemma, with underscores.
        id: id of the instance; empty for a word without a sense.
    """

    start: int
    end: int
    pos: str
    lemma: str
    id: str


class Tagged(NamedTuple):
    """A text, as it is written, with its tokens."""

    document: Document
    source: str
    tokens: list[Token]


def read_tagged(data: Path) -> Iterator[Tagged]:
    """Yield the texts of a file of the unified format as one writes them, with all tags."""
    with opened(data) as stream:
        for _, element in ElementTree.iterparse(stream):
            if element.tag == "text":
                yield _tagged(element)
                element.clear()


def _tagged(text: ElementTree.Element) -> Tagged:
    pieces, size = list[str](), 0
    sentences, tokens = list[tuple[int, int]](), list[Token]()
    for sentence in text:
        before, first = "\n" if tokens else "", len(tokens)
        is_open = False  # a quotation in straight marks
        for child in sentence:
            word = " ".join((child.text or "").split())
            word = QUOTES.get(word, word)
            if not word:
                continue
            if word == '"':
                word, is_open = "”" if is_open else "“", not is_open
            gap = "" if len(tokens) > first and CLOSING.fullmatch(word) else before
            start, size = size + len(gap), size + len(gap) + len(word)
            pieces += (gap, word)
            pos = CONTENT.get(child.get("pos", ""), "")
            tokens.append(Token(start, size, pos, child.get("lemma", ""), child.get("id", "")))
            before = "" if word in OPENING else " "
        if len(tokens) > first:
            sentences.append((tokens[first].start, size))
    document = Document(text.get("id", ""), "".join(pieces), sentences)
    return Tagged(document, text.get("source", ""), tokens)


@dataclass
class Counts:
    """Counts of instances, and of links that overlap one."""

    instances: int = 0
    found: int = 0
    right_pos: int = 0
    right: int = 0
    links: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Counts(*(one + another for one, another in pairs))

    def cells(self) -> list[str]:
        """Return the figures of a row."""
        ratios = (
            (self.found, self.instances), (self.right_pos, self.found), (self.right, self.found),
            (self.right, self.right_pos), (self.right, self.links), (self.right, self.instances),
            (2 * self.right, self.links + self.instances),
        )  # fmt: skip
        return [f"{self.instances:,}", *(f"{100 * part / max(1, whole):.1f}" for part, whole in ratios)]


def counted(
    tagged: Tagged, links: Sequence[Link], gold: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Counts], int, int]:
    """Return the counts by part of speech, the links on function words, and how many such words there are."""
    counts = {pos: Counts() for pos in "nvar"}
    instances = [token for token in tagged.tokens if token.id in gold]
    others = [token for token in tagged.tokens if not token.id and not token.pos and _is_word(tagged, token)]
    by_span = {(link.start, link.end): link for link in links}
    for token in instances:
        count = counts[token.pos]
        count.instances += 1
        count.links += sum(_overlap(link, token) for link in links)
        link = by_span.get((token.start, token.end))
        if link is not None and link.sense is not None:
            count.found += 1
            count.right_pos += BY_KEY[link.sense.partition("%")[2][0]] == token.pos
            count.right += plain_key(link.sense) in gold[token.id]
    return counts, sum((token.start, token.end) in by_span for token in others), len(others)


def _is_word(tagged: Tagged, token: Token) -> bool:
    return tagged.document.text[token.start : token.end].isalpha()


def _overlap(link: Link, token: Token) -> bool:
    return link.start < token.end and token.start < link.end


def rows(linker: Linker, names: Iterable[str]) -> Iterator[list[str]]:
    """Yield a row for each set, one for all of them, and one for each part of speech."""
    total, on_function_words, function_words = {pos: Counts() for pos in "nvar"}, 0, 0
    for name in names:
        gold = read_gold(DATA / "wsd" / f"{name}.gold.key.txt")
        texts = list(read_tagged(DATA / "wsd" / f"{name}.data.xml"))
        linked = linker([Document(text.document.id, text.document.text) for text in texts])
        of_set, links, words = {pos: Counts() for pos in "nvar"}, 0, 0
        for text, answer in zip(texts, linked, strict=True):
            counts, *elsewhere = counted(text, answer.links, gold)
            of_set = {pos: of_set[pos] + counts[pos] for pos in of_set}
            links, words = links + elsewhere[0], words + elsewhere[1]
        total = {pos: total[pos] + of_set[pos] for pos in total}
        on_function_words, function_words = on_function_words + links, function_words + words
        yield [name, *sum(of_set.values(), Counts()).cells(), f"{100 * links / max(1, words):.1f}"]
    share = f"{100 * on_function_words / max(1, function_words):.1f}"
    yield ["together", *sum(total.values(), Counts()).cells(), share]
    names_of_pos = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}
    for pos, count in total.items():
        yield [names_of_pos[pos], *count.cells(), ""]


def main() -> None:
    """Write a table for each model to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw_senses")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--set", dest="sets", action="append", choices=FIVE)
    chosen = parser.parse_args()
    columns = (
        "set", "instances", "found", "pos", "sense", "sense of right pos", "P", "R", "F1", "function words",
    )  # fmt: skip
    with kgkit.open_kb("wordnet", home=chosen.home) as kb:
        for model in chosen.model:
            linker = Linker.open(kb, model=model)
            table = [*rows(linker, chosen.sets or FIVE)]
            title = f"Word senses from plain text: {linker.model}"
            print(Table(title=title, notes=NOTES, columns=columns, rows=table).markdown())


if __name__ == "__main__":
    main()
