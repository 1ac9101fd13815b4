"""A knowledge base of one's own, as JSON lines: every kind of line, in a file or a folder."""

import bz2
import gzip
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgkit
from kb_builders.jsonl import JSONLBuilder
from kgkit.building import Alias, Entity, Form, KBProperties, Record, Redirect, Triple
from kgkit.building.build import build_kb
from kgkit.kb import KnowledgeBase
from tests.cli_helpers import run

ACME: dict[str, Any] = {
    "key": "acme",
    "label": "Acme Corp.",
    "description": "Makes anvils, and little else.",
    "kind": "company",
    "pos": "n",
    "types": ["company", "maker"],
    "attributes": {"founded": 1921, "sites": ["Tucson", "Yuma"], "listed": False, "note": None},
    "aliases": ["ACME", {"text": "Acme", "count": 12}, {"text": "the anvil people", "count": 0.5}],
}
ANVIL = {"key": "anvil"}
LINES = [
    {"kgkit": {"name": "Cartoons", "version": "3", "licence": "CC0-1.0", "inverses": {"makes": "made_by"}}},
    ACME,
    ANVIL,
    {"alias": "Acme", "key": "anvil", "count": 3},
    {"subject": "acme", "relation": "makes", "object": "anvil"},
    {"redirect": "acme_inc", "to": "acme"},
    {"form": "anvilia", "lemma": "anvil", "pos": "n"},
]


def put(path: Path, lines: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def observed(source: Path) -> list[Record]:
    builder = JSONLBuilder()
    return [record for part in builder.parts(source) for record in builder.observe(source, part)]


def records(tmp_path: Path, *lines: Any) -> list[Record]:
    return observed(put(tmp_path / "kb.jsonl", lines))


def built(tmp_path: Path, source: Path) -> KnowledgeBase:
    build_kb("jsonl", source, name="mine", home=tmp_path / "home")
    return kgkit.open_kb("mine", tmp_path / "home")


def found(kb: KnowledgeBase, text: str) -> list[tuple[str, float]]:
    return [(candidate.entity.key, round(candidate.prior, 4)) for candidate in kb.decode(kb.candidates(text))]


# -- a line of each kind ----------------------------------------------------------------


def test_an_entity_has_all_its_fields(tmp_path):
    entity, *aliases = records(tmp_path, ACME)
    assert entity == Entity(
        "acme",
        "Acme Corp.",
        "Makes anvils, and little else.",
        "company",
        "n",
        ("company", "maker"),
        {"founded": 1921, "sites": ["Tucson", "Yuma"], "listed": False, "note": None},
    )
    assert aliases == [
        Alias("ACME", "acme"),
        Alias("Acme", "acme", 12),
        Alias("the anvil people", "acme", 0.5),
        Alias("Acme Corp.", "acme"),
    ]


def test_an_entity_needs_no_more_than_a_key(tmp_path):
    assert records(tmp_path, ANVIL) == [Entity("anvil", "anvil"), Alias("anvil", "anvil")]


def test_what_is_null_is_as_if_it_were_not_there(tmp_path):
    line = {**dict.fromkeys(ACME), "key": "anvil", "subject": None, "to": None}
    assert records(tmp_path, line) == records(tmp_path, ANVIL)


def test_an_alias_may_stand_with_its_entity_or_on_a_line_of_its_own(tmp_path):
    inside = {"key": "anvil", "aliases": [{"text": "a", "count": 2, "sense": "acme"}, "b"]}
    assert records(tmp_path, inside)[1:3] == [Alias("a", "anvil", 2, "acme"), Alias("b", "anvil")]
    outside = [{"alias": "a", "key": "anvil", "count": 2, "sense": "acme"}, {"alias": "b", "key": "anvil"}]
    assert records(tmp_path, *outside) == [Alias("a", "anvil", 2, "acme"), Alias("b", "anvil")]


def test_triples_redirects_and_forms_are_lines(tmp_path):
    assert records(tmp_path, *LINES)[-4:] == [
        Alias("Acme", "anvil", 3),
        Triple("acme", "makes", "anvil"),
        Redirect("acme_inc", "acme"),
        Form("anvilia", "anvil", "n"),
    ]


def test_fields_may_come_in_any_order_and_with_blanks(tmp_path):
    path = tmp_path / "kb.jsonl"
    path.write_text('  { "object" : "b",\t"subject":"a" , "relation":"r" }  \r\n')
    assert observed(path) == [Triple("a", "r", "b")]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    entity=st.builds(
        Entity, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, st.lists(TEXTS).map(tuple), st.dictionaries(TEXTS, JSON)
    ),
    alias=st.builds(Alias, TEXTS, TEXTS, st.floats(0, 1e9), st.none() | TEXTS),
    triple=st.builds(Triple, TEXTS, TEXTS, TEXTS),
    plain=st.booleans(),
)
def test_what_json_writes_is_read(tmp_path_factory, entity, alias, triple, plain):
    path = tmp_path_factory.mktemp("kb") / "kb.jsonl"
    fields = entity.to_dict()
    del fields["id"]
    lines = [
        {"kgkit": {"label_aliases": False}},
        fields,
        {"alias": alias.surface, "key": alias.key, "count": alias.count, "sense": alias.sense},
        {"subject": triple.subject, "relation": triple.relation, "object": triple.object},
    ]
    text = "".join(json.dumps(line, ensure_ascii=plain) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")
    assert observed(path) == [entity, alias, triple]


# -- labels as aliases ------------------------------------------------------------------


def test_a_label_is_an_alias_that_nobody_counted(tmp_path):
    assert records(tmp_path, {"key": "a", "label": "An A"})[1:] == [Alias("An A", "a", 0)]


def test_a_label_that_is_given_as_an_alias_is_not_given_again(tmp_path):
    line = {"key": "a", "label": "An A", "aliases": [{"text": "An A", "count": 4}]}
    assert records(tmp_path, line)[1:] == [Alias("An A", "a", 4)]
    assert records(tmp_path, {"key": "a", "aliases": ["a"]})[1:] == [Alias("a", "a")]


def test_labels_are_no_aliases_where_the_head_says_so(tmp_path):
    found = records(tmp_path, {"kgkit": {"label_aliases": False}}, {"key": "a", "aliases": ["b"]})
    assert found == [Entity("a", "a"), Alias("b", "a")]


def test_the_head_of_a_folder_rules_all_its_files(tmp_path):
    put(tmp_path / "kb/entities.jsonl", [{"kgkit": {"label_aliases": False}}, {"key": "a"}])
    put(tmp_path / "kb/triples.jsonl", [{"key": "b"}])
    assert observed(tmp_path / "kb") == [Entity("a", "a"), Entity("b", "b")]


# -- the head ---------------------------------------------------------------------------


def test_the_head_says_what_the_whole_is(tmp_path):
    head = {
        "name": "Cartoons",
        "version": "3",
        "licence": "CC0-1.0",
        "url": "https://example.org/c",
        "date": "2026-01-02",
        "language": "en",
        "generator": "lemma",
        "smoothing": 0.5,
        "inverses": {"makes": "made_by"},
    }
    info, read, properties = JSONLBuilder().look(put(tmp_path / "kb.jsonl", [{"kgkit": head}, ANVIL]))
    assert (info.name, info.version, info.licence) == ("Cartoons", "3", "CC0-1.0")
    assert (info.url, info.date) == ("https://example.org/c", "2026-01-02")
    assert properties == KBProperties({"makes": "made_by"}, 0.5, "lemma", "en")
    assert read == [tmp_path / "kb.jsonl"]


@pytest.mark.parametrize("head", [[], [{"kgkit": {}}]])
def test_without_a_head_the_name_is_that_of_the_file_and_pairs_are_smoothed_by_one(tmp_path, head):
    info, _, properties = JSONLBuilder().look(put(tmp_path / "my.kb.jsonl", [*head, ANVIL]))
    assert (info.name, info.version, info.licence) == ("my", "", "")
    assert properties == KBProperties({}, 1.0, "alias", "")


def test_a_folder_without_a_head_has_its_own_name(tmp_path):
    put(tmp_path / "cartoons/entities.jsonl", [ANVIL])
    assert JSONLBuilder().look(tmp_path / "cartoons").info.name == "cartoons"


def test_the_folder_one_is_in_has_a_name_too(tmp_path, monkeypatch):
    put(tmp_path / "cartoons" / "entities.jsonl", [ACME])
    monkeypatch.chdir(tmp_path / "cartoons")
    assert JSONLBuilder().look(Path()).info.name == "cartoons"


def test_smoothing_and_inverses_of_the_head_are_those_of_the_kb(tmp_path):
    lines = [
        {"kgkit": {"smoothing": 0, "inverses": {"makes": "made_by"}}},
        {"key": "a", "aliases": [{"text": "x", "count": 3}]},
        {"key": "b", "aliases": [{"text": "x", "count": 1}]},
        {"subject": "a", "relation": "makes", "object": "b"},
    ]
    with built(tmp_path, put(tmp_path / "kb.jsonl", lines)) as kb:
        assert found(kb, "x") == [("a", 0.75), ("b", 0.25)]
        assert [*kb.match("b")] == [Triple("b", "made_by", "a")]
    with built(tmp_path, put(tmp_path / "kb.jsonl", lines[1:])) as kb:
        assert found(kb, "x") == [("a", 0.6667), ("b", 0.3333)]
        assert [*kb.match("b")] == []


# -- files and folders ------------------------------------------------------------------


def folder_of(folder: Path) -> Path:
    """Write `LINES` as a folder of five files."""
    put(folder / "entities.jsonl", LINES[:3])
    for name, line in zip(["aliases", "triples", "redirects", "forms"], LINES[3:], strict=True):
        put(folder / f"{name}.jsonl", [line])
    return folder


def test_a_folder_is_read_like_one_file_entities_first(tmp_path):
    folder = folder_of(tmp_path / "kb")
    assert JSONLBuilder().parts(folder) == [
        "entities.jsonl", "aliases.jsonl", "triples.jsonl", "redirects.jsonl", "forms.jsonl",
    ]  # fmt: skip
    assert observed(folder) == observed(put(tmp_path / "kb.jsonl", LINES))


def test_a_folder_needs_entities_only(tmp_path):
    put(tmp_path / "kb/entities.jsonl", [ANVIL])
    (tmp_path / "kb/README.md").write_text("not read")
    assert observed(tmp_path / "kb") == observed(put(tmp_path / "kb.jsonl", [ANVIL]))
    assert JSONLBuilder().look(tmp_path / "kb").read == [tmp_path / "kb/entities.jsonl"]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_files_may_be_compressed_alone_and_in_folders(tmp_path, suffix, compress):
    whole = put(tmp_path / "kb.jsonl", LINES)
    packed = tmp_path / f"kb.jsonl{suffix}"
    packed.write_bytes(compress(whole.read_bytes()))
    folder = folder_of(tmp_path / "folder")
    for path in [*folder.iterdir()]:
        path.with_name(path.name + suffix).write_bytes(compress(path.read_bytes()))
        path.unlink()
    assert observed(packed) == observed(folder) == observed(whole)
    assert JSONLBuilder().look(packed).info == JSONLBuilder().look(whole).info


def test_the_manifest_has_a_checksum_over_all_files(tmp_path):
    folder = folder_of(tmp_path / "kb")
    sums = []
    for text in ("gander", "geese"):
        put(folder / "forms.jsonl", [{"form": text, "lemma": "goose"}])
        sums.append(build_kb("jsonl", folder, name="mine", home=tmp_path / "home").manifest.source.sha256)
    assert len({*sums}) == 2


# -- the knowledge base -----------------------------------------------------------------


@pytest.fixture(params=["file", "folder"])
def cartoons(request, tmp_path):
    source = folder_of(tmp_path / "kb") if request.param == "folder" else put(tmp_path / "kb.jsonl", LINES)
    with built(tmp_path, source) as kb:
        yield kb


def test_it_answers_with_what_was_written(cartoons):
    assert cartoons["acme_inc"].attributes == ACME["attributes"]
    assert cartoons["acme"].id == 0
    assert [*cartoons.match("anvil")] == [Triple("anvil", "made_by", "acme")]
    assert cartoons.manifest.counts.dropped == {}
    assert cartoons.manifest.source.name == "Cartoons"


def test_its_priors_are_smoothed_counts(cartoons):
    # Folded, acme has 12 + 0 and 1 of smoothing, anvil 3 and 1; half is decided by the spelling.
    folded, spelled = 13 / 17, (13 * 13 / 14) / (13 * 13 / 14 + 4)
    assert found(cartoons, "acmE") == [("acme", round(13 / 17, 4)), ("anvil", round(4 / 17, 4))]
    assert found(cartoons, "Acme")[0] == ("acme", round((folded + spelled) / 2, 4))
    assert found(cartoons, "Acme Corp.") == [("acme", 1)]


def test_a_text_is_linked_with_it_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    made = run("build-kb", "jsonl", put(tmp_path / "kb.jsonl", LINES), "--name", "mine")
    assert made.code == 0
    assert made.out.startswith("mine@")
    assert "2 entities" in made.out
    linked = run("link", "-", "--kb", "mine", "--jsonl", given=b"Acme Corp. sold an anvil.")
    links = json.loads(linked.out)["links"]
    assert [(link["text"], link["entity"]) for link in links] == [("Acme Corp.", "acme"), ("anvil", "anvil")]
