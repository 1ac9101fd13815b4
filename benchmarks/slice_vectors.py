"""Vectors of AIDA's pages from the links among them: smoothed titles, and a dump for Wikipedia2Vec.

    python -m benchmarks.slice_vectors smooth OUT.bin --home HOME --kb aida --encoder base
    kgkit embed aida --method wikipedia2vec --source OUT.bin --name smoothed

    python -m benchmarks.slice_vectors dump OUT_DIR
    wikipedia2vec train --dim-size 384 OUT_DIR/slicewiki-20260101-pages-articles.xml.bz2 model
    wikipedia2vec save-text --out-format word2vec model vectors.txt
    kgkit embed aida --method wikipedia2vec --source vectors.txt

`smooth` takes the vectors of titles of a knowledge base (`--vectors text`). The vector of a page is half its
title's, half the mean of those of the pages it links with, each of length 1. Beside them stand the pieces of
`--encoder` that are whole words, encoded by what made the vectors of titles, so that `kgkit align` has words
to fit a map on.

`dump` writes AIDA's slice of Wikipedia as MediaWiki would: of each page its title and the titles that it
links to, and each training document with links where it has mentions. Nothing of testa and testb is read. The
data must not be passed on: nor may what is written here.
"""

import argparse
import bz2
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

import kgkit
from benchmarks.aida_kb import records
from benchmarks.harness import REPOSITORY
from benchmarks.wikipedia_dump import Page, head, xml
from kgkit.embedding.text import encoder_of
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.home import Home
from kgkit.models.encoders import load_encoder
from kgkit.types import Matrix
from kgkit.vectors.scan import unit

OWN: Final = 0.5  # share of a page's own title in its vector
DUMP: Final = "slicewiki-20260101-pages-articles.xml.bz2"  # the package reads no other
RELATION: Final = "links_to"


# -- titles, smoothed over links --------------------------------------------


def smooth(rows: Matrix, links: Sequence[tuple[int, int]], own: float = OWN) -> Matrix:
    """Return rows of which each is mixed with the mean of those that it is linked with.

    Args:
        rows: (N, D) vectors.
        links: pairs of rows; the direction says nothing, and a pair that is there twice counts twice.
        own: share of the row itself. A row without links stays as it is.

    Returns:
        (N, D) vectors of length 1; rows of zeros stay zeros.
    """
    length_1 = unit(rows)
    sums, counts = np.zeros_like(length_1), np.zeros(len(rows), np.float32)
    for source, target in links:
        sums[source] += length_1[target]
        sums[target] += length_1[source]
        counts[source] += 1
        counts[target] += 1
    linked = counts > 0
    mixed = length_1.copy()
    mixed[linked] = own * length_1[linked] + (1 - own) * sums[linked] / counts[linked, None]
    return unit(mixed)


def write_word2vec(path: Path, names: Sequence[str], rows: Matrix) -> None:
    """Write vectors in word2vec's binary format; blanks in names become underscores."""
    with path.open("wb") as file:
        file.write(b"%d %d\n" % rows.shape)
        for name, row in zip(names, rows, strict=True):
            file.write(name.replace(" ", "_").encode() + b" " + row.astype("<f4").tobytes())


def write_smoothed(path: Path, home: Path, kb_name: str, vectors_name: str, encoder_name: str) -> None:
    """Write smoothed vectors of all pages of a knowledge base, and those of the words of an encoder."""
    with kgkit.open_kb(kb_name, home=home) as kb:
        vectors = kb.vectors(vectors_name)
        keys = [*kb.keys()]
        ids = [kb.id(key) for key in keys]
        row_of = {entity: row for row, entity in enumerate(ids)}
        links = [
            (row_of[entity], row_of[int(neighbor)])
            for entity in ids
            for neighbor in kb.neighbors(entity, RELATION)
        ]
        rows = smooth(np.stack([vectors.gather(entity) for entity in ids]), links)
        pieces, _ = load_encoder(encoder_name, Home(home)).word_pieces()
        words = sorted(vocabulary_words(pieces))
        encoded = np.concatenate([part for part, _ in encoder_of(vectors).encode_chunks(words)])
    write_word2vec(path, [*(f"ENTITY/{key}" for key in keys), *words], np.concatenate([rows, unit(encoded)]))


# -- a dump -----------------------------------------------------------------


def page_of(entity: Mapping[str, Any], titles: Mapping[int, str]) -> Page:
    """Return the page of an entity: its title, and links to what it links to."""
    links = "".join(f"* [[{titles[other]}]]\n" for other in entity["links"] if other != entity["id"])
    return Page(escape(entity["title"]), escape(f"{entity['title']}\n\n{links}"))


def document_page(document: Mapping[str, Any]) -> Page:
    """Return the page of a training document, with links for its mentions that have an entity."""
    tokens = document["tokens"]
    texts, position = [], 0
    for mention in sorted(document["mentions"], key=lambda mention: mention["start"]):
        if mention["entity"] is None or mention["start"] < position:
            continue
        texts += tokens[position : mention["start"]]
        surface = " ".join(tokens[mention["start"] : mention["end"]])
        texts.append(f"[[{mention['entity'].replace('_', ' ')}|{surface}]]")
        position = mention["end"]
    texts += tokens[position:]
    return Page(f"Document {document['doc_id']}", escape(" ".join(texts)))


def dump_pages(folder: Path) -> Iterator[Page]:
    """Yield the pages of the slice, then those of the training documents."""
    entities = [*records(folder / "candidates", "entities")]
    titles = {entity["id"]: entity["title"] for entity in entities}
    for entity in entities:
        yield page_of(entity, titles)
    for document in records(folder, "aida_train"):
        yield document_page(document)


def write_dump(folder: Path, out: Path) -> Path:
    """Write the dump into the folder *out*, and return its path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / DUMP
    with bz2.open(path, "wt", encoding="utf-8", newline="\n") as file:
        file.write(head())
        for number, page in enumerate(dump_pages(folder), 1):
            file.write(xml(page, number))
        file.write("</mediawiki>\n")
    return path


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slice_vectors")
    parser.add_argument("what", choices=("smooth", "dump"))
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--kb", default="aida")
    parser.add_argument("--vectors", default="text")
    parser.add_argument("--encoder", default="base", help="encoder whose word pieces are the words")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data", metavar="DIR")
    chosen = parser.parse_args()
    if chosen.what == "dump":
        write_dump(chosen.data / "aida", chosen.out)
    elif chosen.home is None:
        parser.error("smooth reads a home: --home DIR")
    else:
        write_smoothed(chosen.out, chosen.home, chosen.kb, chosen.vectors, chosen.encoder)


if __name__ == "__main__":
    main()
