"""Any documents, written in each format and read again; files that are damaged at random."""

import json
import random
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.linking_formats import write_doc_bin, write_kilt
from kgkit.errors import KgkitError
from kgkit.evaluation import read_gold_documents
from kgkit.evaluation.el_formats import GOLD_FORMATS, gold_format, read_gold_data
from kgkit.evaluation.nif import write_nif

pytest.importorskip("pyoxigraph")
pytest.importorskip("spacy")

WORDS = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=6)
TITLES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join).filter(lambda title: title != "NIL")


@st.composite
def records(draw):
    """A document whose mentions do not overlap, as neither columns nor DocBin allow that."""
    tokens = draw(st.lists(WORDS, min_size=1, max_size=12))
    cuts = sorted(draw(st.sets(st.integers(0, len(tokens)), max_size=8)))
    breaks = sorted({0, len(tokens), *draw(st.sets(st.integers(0, len(tokens)), max_size=3))})
    mentions = [
        {
            "start": start,
            "end": end,
            "entity": draw(st.none() | TITLES),
            "type": draw(st.sampled_from(["", "T"])),
        }
        for start, end in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    sentences = [[start, end] for start, end in pairwise(breaks)]
    return {"tokens": tokens, "sentences": sentences, "mentions": mentions}


def write_own(path, documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))


def write_elevant(path, documents):
    """Write gold documents as ELEVANT does."""
    articles = [
        {
            "id": gold.document.id,
            "text": gold.document.text,
            "labels": [
                {
                    "id": number,
                    "span": [label.start, label.end],
                    "entity_id": label.entity or "<NIL>",
                    "name": "x",
                }
                for number, label in enumerate(gold.gold)
            ],
        }
        for gold in documents
    ]
    write_own(path, articles)


def write_linked(path, documents):
    """Write gold documents as texts with mentions."""
    records = [
        {
            "id": gold.document.id,
            "text": gold.document.text,
            "mentions": [
                {"start": label.start, "end": label.end, "entity": label.entity} for label in gold.gold
            ],
        }
        for gold in documents
    ]
    write_own(path, records)


def write_aida(path, documents):
    """Write gold documents in AIDA's columns."""
    rows = []
    for gold in documents:
        text, labels = gold.document.text, gold.gold
        rows.append(f"-DOCSTART- ({gold.document.id})")
        end_of_last = 0
        for start, end in gold.document.tokens:
            if "\n" in text[end_of_last:start]:
                rows.append("")
            label = next((each for each in labels if each.start <= start < each.end), None)
            columns = [text[start:end]]
            if label is not None:
                surface = text[label.start : label.end].replace("\n", " ")
                columns += ["B" if start == label.start else "I", surface]
                page = "http://en.wikipedia.org/wiki/" + quote((label.entity or "").replace(" ", "_"))
                columns += ["--NME--"] if label.entity is None else ["YAGO", page]
            rows.append("\t".join(columns))
            end_of_last = end
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


WRITERS = {
    "elevant": write_elevant,
    "kilt": write_kilt,
    "aida": write_aida,
    "nif": write_nif,
    "docbin": write_doc_bin,
    "linked": write_linked,
}


def texts_and_gold(documents):
    """Return of each document with mentions its text and gold, titles with spaces."""
    return [
        (
            gold.document.text,
            [
                (label.start, label.end, label.entity and label.entity.replace("_", " "))
                for label in gold.gold
            ],
        )
        for gold in documents
        if gold.gold
    ]


@pytest.mark.parametrize("name", list(WRITERS))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(documents=st.lists(records(), min_size=1, max_size=3))
def test_any_documents_survive_every_format(tmp_path, name, documents):
    own = tmp_path / "own.jsonl"
    write_own(own, [{"doc_id": number, **document} for number, document in enumerate(documents, start=1)])
    gold = [*read_gold_documents(own)]
    texts = [text for text, _ in texts_and_gold(gold)]
    if name == "kilt" and (not texts or len(texts) != len(set(texts))):
        return  # KILT has mentions only, and no ids of documents: equal texts in a row are one
    if name == "elevant" and any(
        entity.startswith(("<", "Unknown")) for each in gold for entity in each.entities if entity
    ):
        return  # such an identifier is NIL
    if name == "aida" and any(
        token.startswith("-DOCSTART-") for each in documents for token in each["tokens"]
    ):
        return
    WRITERS[name](tmp_path / "data", gold)
    read = [*read_gold_data(tmp_path / "data", name)]
    assert texts_and_gold(read) == texts_and_gold(gold)


RIVER = {
    "doc_id": 7, "tokens": "The Rhône leaves Lake Geneva at noon .".split(), "sentences": [[0, 5], [5, 8]],
    "mentions": [{"start": 1, "end": 2, "entity": "Rhône"}, {"start": 3, "end": 5, "entity": None}],
}  # fmt: skip


def damaged(content, generator):
    """Return content with a piece changed, cut off, left out or doubled."""
    start = generator.randrange(len(content))
    end = min(len(content), start + generator.randrange(1, 20))
    middle = generator.choice(
        [b"", bytes(generator.randrange(256) for _ in range(end - start)), b"-1", b'"', b"\n"]
    )
    return generator.choice(
        [content[:start], content[:start] + middle + content[end:], content[:end] + content[start:]]
    )


@pytest.mark.parametrize("name", GOLD_FORMATS)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, name):
    own = tmp_path / "own.jsonl"
    write_own(own, [RIVER, {**RIVER, "doc_id": 8}])
    path = tmp_path / "data"
    if name == "kgkit":
        path.write_bytes(own.read_bytes())
    else:
        WRITERS[name](path, read_gold_documents(own))
    content, generator = path.read_bytes(), random.Random(name)
    refused = 0
    for _ in range(150):
        path.write_bytes(damaged(content, generator))
        try:
            documents = [*read_gold_data(path, name)]
        except KgkitError as error:
            assert str(error)
            refused += 1
            continue
        for gold in documents:
            for mention in gold.document.mentions:
                assert gold.document.text[mention.start : mention.end] == mention.text
    assert refused > 20


@pytest.mark.parametrize("name", GOLD_FORMATS)
def test_a_damaged_beginning_is_recognised_or_refused(tmp_path, name):
    own = tmp_path / "own.jsonl"
    write_own(own, [RIVER])
    WRITERS.get(name, lambda path, _: path.write_bytes(own.read_bytes()))(
        tmp_path / "data", read_gold_documents(own)
    )
    content, generator = (tmp_path / "data").read_bytes(), random.Random(name)
    assert gold_format(tmp_path / "data") == name
    for _ in range(50):
        (tmp_path / "data").write_bytes(damaged(content[:200], generator))
        try:
            assert gold_format(tmp_path / "data") in GOLD_FORMATS
        except KgkitError as error:
            assert "not recognised" in str(error)
