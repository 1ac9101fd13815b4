"""The example lines of docs/evaluation.md are what the readers of their formats read."""

import re

import pytest

pytest.importorskip("pyoxigraph")

from kgkit.evaluation import read_gold_data
from tests.doc_pages import ROOT

PAGE = (ROOT / "docs/evaluation.md").read_text(encoding="utf-8")
NIF = """\
@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
<http://example.org/d1#char=0,10> a nif:Context ; nif:isString "From Bern." .
<http://example.org/d1#char=5,9> a nif:Phrase ; nif:beginIndex 5 ; nif:endIndex 9 ;
    nif:referenceContext <http://example.org/d1#char=0,10> .
"""
SURROUNDINGS = {"aida": ("-DOCSTART- (d1)\nFrom\n", "\n.\n"), "nif": (NIF, "\n")}
SUFFIXES = {"aida": ".tsv", "nif": ".ttl"}


def example_lines():
    """Return the example line of each format."""
    block = re.search(r"^A line of each.*?\n\n((?:    .*\n)+)", PAGE, re.MULTILINE)
    return dict(re.split(r"\s+", line.strip(), maxsplit=1) for line in block[1].splitlines())


def test_every_format_of_the_table_has_an_example_line():
    formats = re.findall(r"^\| `(\w+)` \|", PAGE.split("## Measures")[0], re.MULTILINE)
    assert [*example_lines()] == formats


@pytest.mark.parametrize("form", ["kgkit", "elevant", "kilt", "aida", "nif"])
def test_an_example_line_has_one_mention(tmp_path, form):
    before, after = SURROUNDINGS.get(form, ("", "\n"))
    path = tmp_path / f"data{SUFFIXES.get(form, '.jsonl')}"
    path.write_text(before + example_lines()[form] + after, encoding="utf-8")
    [document] = read_gold_data(path)
    [label] = document.gold
    entity = "Q70" if form == "elevant" else "Bern"
    assert (document.document.text[label.start : label.end], label.entity) == ("Bern", entity)


def test_the_example_line_of_docbin_makes_such_a_span():
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, Span

    doc = Doc(spacy.blank("en").vocab, words=["From", "Bern", "."])
    span = eval(example_lines()["docbin"], {"Span": Span, "doc": doc})
    assert (span.text, span.kb_id_) == ("Bern", "Bern")
