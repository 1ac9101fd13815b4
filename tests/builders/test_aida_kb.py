"""AIDA's Wikipedia slice as JSON lines: what each source gives, on a slice of five pages written by hand."""

import bz2
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import kgkit
from benchmarks import aida, aida_kb, entities
from tests.toys import listing, run_python

CITY, TOWN, CLUB, MYTH, OLD = (
    "London", "London, Ontario", "Athletic Club (football)", "Chimera (mythology)", "Bistriţa",
)  # fmt: skip


def entity(id: int, title: str, links: int, *others: int, type: str = "UNK", popularity: float | None = 1.5):
    return {
        "id": id, "title": title, "in_count": links, "out_count": 7, "type": type,
        "freebase_popularity": popularity, "links": list(others),
    }  # fmt: skip


def document(id: int, split: str, *mentions: tuple[str, str | None]) -> dict[str, Any]:
    """Return a document whose text is its mentions, with their gold entities."""
    tokens: list[str] = []
    found = []
    for text, gold in mentions:
        start = len(tokens)
        tokens += text.split()
        found.append({"start": start, "end": len(tokens), "text": text, "type": "LOC", "entity": gold})
    return {"doc_id": id, "split": split, "tokens": tokens, "mentions": found}


ENTITIES = [
    entity(1, CITY, 900, 2, 3, type="GPE"),
    entity(2, TOWN, 100, type="UKN"),
    entity(3, CLUB, 50, 1, type="ORG"),
    entity(4, MYTH, 0, popularity=None),
    entity(5, OLD, 20, 5),
]
DOCUMENTS = {
    "train": [document(1, "train", ("LONDON", CITY), ("Athletic", CLUB))],
    "testa": [document(2, "testa", ("London", CITY), ("Lord 's", None))],
    "testb": [document(3, "testb", ("London", TOWN), ("The Smoke", CITY), ("nobody", None))],
}
# Candidates by document, as they lie beside the mentions: in testb London may be the club too.
CANDIDATES = [
    (1, 0, [1]), (1, 1, [3]), (2, 0, [1, 2]), (2, 1, [3]), (3, 0, [1, 2, 3]), (3, 1, [1]),
]  # fmt: skip
ALIASES = {
    "LONDON": [1], "London": [1, 2, 3], "Athletic": [3], "The Smoke": [1], "Lord's": [3], "Lord 's": [3],
}  # fmt: skip
REDIRECTS = {
    "The_Big_Smoke": CITY,
    "Athletic_(sports_club)": "Athletic_Club_(football)",
    OLD: "Bistrița",  # the entity's own title is a redirect by now
    "Bistritz": "Bistrița",
    "London,_Canada": "London,_Ontario",
    "Chimera_(mythology)": "Bistrița",  # two entities are one page by now
    "Nowhere": "Void",
}


def put(folder: Path, name: str, rows: Any) -> None:
    path = folder / f"{name}.xz"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = json.dumps(rows) if isinstance(rows, dict) else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(lzma.compress(lines.encode()))


def slice_of(folder: Path, documents: dict[str, list[dict[str, Any]]] = DOCUMENTS) -> Path:
    """Write the five pages as the shared data would have them."""
    of_id = {row["id"]: row for row in ENTITIES}
    put(folder, "candidates/entities.jsonl", ENTITIES)
    put(
        folder,
        "candidates/aliases.jsonl",
        [
            {"surface": surface, "candidates": [{"id": id, "title": of_id[id]["title"]} for id in ids]}
            for surface, ids in ALIASES.items()
        ],
    )
    put(
        folder,
        "candidates/mention_candidates.jsonl",
        [{"doc_id": id, "mention": place, "candidates": found} for id, place, found in CANDIDATES],
    )
    put(folder, "redirects.json", REDIRECTS)
    for split, rows in documents.items():
        put(folder, f"aida_{split}.jsonl", rows)
    return folder


@pytest.fixture
def folder(tmp_path):
    return slice_of(tmp_path / "aida")


def lines(out: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def written(folder: Path, out: Path, *without: str) -> dict[tuple[str, str], float]:
    """Write the KB's files, and return its aliases."""
    aida_kb.write(folder, out, without)
    found = [((line["alias"], line["key"]), line["count"]) for line in lines(out, "aliases")]
    assert len(dict(found)) == len(found)
    return dict(found)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


# -- names and titles ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("London", ["London"]),
        ("Chimera (mythology)", ["Chimera (mythology)", "Chimera"]),
        ("Athens, Georgia", ["Athens, Georgia", "Athens"]),
        ("Athens, Georgia (city)", ["Athens, Georgia (city)", "Athens, Georgia", "Athens"]),
        ("M.I.A. (rapper) (album)", ["M.I.A. (rapper) (album)", "M.I.A. (rapper)"]),
        ("(What's So Funny)", ["(What's So Funny)"]),
        ("10,000 Maniacs", ["10,000 Maniacs"]),
    ],
)
def test_a_title_is_shortened_to_what_a_text_says(title, names):
    assert aida_kb.names(title) == names


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("London", ["London"]),
        ("Bank of Cyprus (company)", [
            "Bank", "Bank of", "Bank of Cyprus", "of", "of Cyprus", "Cyprus", "BOC", "B.O.C.", "BC", "B.C.",
        ]),
        ("Athens, Georgia", ["Athens", "Athens Georgia", "Georgia", "AG", "A.G."]),
        ("A B C D E", [
            "A", "A B", "A B C", "A B C D", "B", "B C", "B C D", "B C D E", "C", "C D", "C D E",
            "D", "D E", "E",
            "ABCDE", "A.B.C.D.E.",
        ]),
    ],
)  # fmt: skip
def test_the_parts_of_a_title_are_runs_of_four_words_at_most_and_initials(title, parts):
    assert aida_kb.parts(title) == parts


def test_a_redirect_leads_to_the_entity_of_its_page():
    assert aida_kb.other_titles({"A": 1}, {"B": "A", "C": "A", "X": "Y"}) == {"B": "A", "C": "A"}


def test_an_entity_whose_title_has_moved_takes_the_new_title_and_its_other_redirects():
    assert aida_kb.other_titles({"A": 1}, {"A": "New", "B": "New"}) == {"B": "A", "New": "A"}


def test_of_two_entities_of_one_page_the_one_of_its_title_is_chosen_else_the_one_with_most_links():
    moved = {"A": "B", "X": "B"}
    assert aida_kb.other_titles({"A": 9, "B": 1}, moved) == {"A": "B", "X": "B"}
    assert aida_kb.other_titles({"A": 9, "X": 1}, moved) == {"B": "A", "X": "A"}
    assert aida_kb.other_titles({"A": 5, "X": 5}, moved) == {"A": "X", "B": "X"}


# -- what is written ----------------------------------------------------------------


def test_entities_have_their_facts_and_types_that_are_known(folder, tmp_path):
    written(folder, tmp_path / "out")
    head, city, town, _, myth, _ = lines(tmp_path / "out", "entities")
    assert head["kgkit"]["version"] == "whole"
    attributes = {"wikipedia_id": 1, "in_count": 900, "out_count": 7, "popularity": 1.5}
    assert city == {"key": CITY, "kind": "page", "types": ["GPE"], "attributes": attributes}
    assert town["types"] == []
    assert "popularity" not in myth["attributes"]


def test_links_become_triples(folder, tmp_path):
    written(folder, tmp_path / "out")
    triples = [tuple(line.values()) for line in lines(tmp_path / "out", "triples")]
    assert triples == [
        (CITY, "links_to", TOWN),
        (CITY, "links_to", CLUB),
        (CLUB, "links_to", CITY),
        (OLD, "links_to", OLD),
    ]


def links_written(folder, out, links):
    aida_kb.write(folder, out, links=links)
    path = out / "triples.jsonl"
    return [(line["subject"], line["object"]) for line in lines(out, "triples")] if path.exists() else []


def test_links_of_test_documents_can_be_left_out(folder, tmp_path):
    # Only a list of testa and one of testb have London, Ontario, and London's link to it.
    assert links_written(folder, tmp_path / "train", "train") == [(CITY, CLUB), (CLUB, CITY)]
    put(folder, "candidates/mention_candidates.jsonl", [
        {"doc_id": id, "mention": place, "candidates": ids}
        for id, place, ids in [*CANDIDATES, (4, 0, [1, 2]), (4, 1, [5])]
    ])  # fmt: skip
    train = [*DOCUMENTS["train"], document(4, "train", ("London", CITY), ("Bistritz", OLD))]
    put(folder, "aida_train.jsonl", train)
    every = [(CITY, TOWN), (CITY, CLUB), (CLUB, CITY), (OLD, OLD)]
    assert sorted(links_written(folder, tmp_path / "both", "train")) == sorted(every)
    assert links_written(folder, tmp_path / "half", "half") == [(CITY, CLUB), (CLUB, CITY)]
    entities.held_out_documents(folder, tmp_path / "learnt", half=True)
    assert [line["doc_id"] for line in lines(tmp_path / "learnt", "aida_train")] == [4]


def test_links_can_be_those_of_pages_and_facts_from_elsewhere(folder, tmp_path):
    pages = {
        "The Big Smoke": "[[Athletic Club (football)|the club]], [[london]], [[Void]], [[Bistritz#Now]]",
        "Chimera (mythology)": "[[London]]",
        "Unknown": "[[London]]",
        "London": "#REDIRECT [[London, Ontario]]",
    }
    dump = "".join(
        f"<page><title>{title}</title>{'<redirect />' * text.startswith('#')}<text>{text}</text></page>"
        for title, text in pages.items()
    )
    path = tmp_path / "wikipedia" / "small.xml.bz2"
    path.parent.mkdir()
    path.write_bytes(bz2.compress(dump.encode()))
    fact = {"sub_label": "London, Canada", "obj_label": "London", "predicate_id": "P1"}
    put(tmp_path / "lama", "TREx/P1.jsonl", [fact, {**fact, "obj_label": "Nowhere"}])
    elsewhere = links_written(folder, tmp_path / "out", "elsewhere")
    assert elsewhere == [(MYTH, CITY), (CITY, CLUB), (CITY, OLD), (TOWN, CITY)]
    assert lines(tmp_path / "out", "entities")[0]["kgkit"]["version"] == "whole, links elsewhere"


def test_aliases_are_mentions_titles_and_redirects_counted_by_links(folder, tmp_path):
    assert written(folder, tmp_path / "out") == {
        # of mentions
        ("LONDON", CITY): 900,
        ("London", CITY): 900,  # its title as well, counted once
        ("London", TOWN): 100,  # before the comma as well
        ("London", CLUB): 50,
        ("Athletic", CLUB): 50,
        ("The Smoke", CITY): 900,
        ("Lord's", CLUB): 50,
        ("Lord 's", CLUB): 50,
        # of titles
        (TOWN, TOWN): 100,
        (CLUB, CLUB): 50,
        ("Athletic Club", CLUB): 50,
        (MYTH, MYTH): 0,
        ("Chimera", MYTH): 0,
        (OLD, OLD): 20,
        # by redirects
        ("The Big Smoke", CITY): 900,
        ("Athletic (sports club)", CLUB): 50,
        ("London, Canada", TOWN): 100,
        ("Bistrița", OLD): 20,
        ("Bistritz", OLD): 20,
        (MYTH, OLD): 20,
        ("Chimera", OLD): 20,
    }


def test_redirects_are_other_keys_unless_they_are_entities(folder, tmp_path):
    written(folder, tmp_path / "out")
    assert {line["redirect"]: line["to"] for line in lines(tmp_path / "out", "redirects")} == {
        "The Big Smoke": CITY,
        "Athletic (sports club)": CLUB,
        "London, Canada": TOWN,
        "Bistrița": OLD,
        "Bistritz": OLD,
    }


def test_without_testb_what_its_mentions_alone_give_is_left_out(folder, tmp_path):
    whole = written(folder, tmp_path / "whole")
    less = written(folder, tmp_path / "less", "testb")
    assert {**whole, **less} == whole
    # A surface of testb alone; and a meaning that a surface of all splits has in testb alone.
    assert whole.keys() - less.keys() == {("The Smoke", CITY), ("London", CLUB)}


def test_without_testb_a_surface_stays_that_a_title_gives(folder, tmp_path):
    testb = {"testb": [document(3, "testb", ("Athletic Club", CLUB))]}
    slice_of(folder, {**DOCUMENTS, **testb})
    assert ("Athletic Club", CLUB) in written(folder, tmp_path / "out", "testb")


def test_without_testa_and_testb_mentions_of_train_alone_give_surfaces(folder, tmp_path):
    less = written(folder, tmp_path / "less", "testa", "testb")
    assert ("LONDON", CITY) in less
    assert {("Lord's", CLUB), ("Lord 's", CLUB), ("The Smoke", CITY)}.isdisjoint(less)


def test_parts_of_titles_and_redirects_are_surfaces_if_asked_for(folder, tmp_path):
    whole = written(folder, tmp_path / "whole")
    aida_kb.write(folder, tmp_path / "more", with_parts=True)
    more = {(line["alias"], line["key"]) for line in lines(tmp_path / "more", "aliases")}
    assert whole.keys() < more
    assert {("Ontario", TOWN), ("Smoke", CITY), ("Big Smoke", CITY), ("TBS", CITY), ("AC", CLUB)} <= more
    assert lines(tmp_path / "more", "entities")[0]["kgkit"]["version"] == "whole, parts of titles"


def test_candidates_of_a_training_document_do_not_come_from_its_own_mentions(folder, tmp_path):
    train = [*DOCUMENTS["train"], document(4, "train", ("The Smoke", CITY), ("LONDON", CLUB))]
    slice_of(folder, {**DOCUMENTS, "train": train})
    put(folder, "candidates/mention_candidates.jsonl", [
        {"doc_id": id, "mention": place, "candidates": ids}
        for id, place, ids in [(1, 0, [1, 3]), (1, 1, [3]), (4, 0, [1, 3]), (4, 1, [1, 3])]
    ])  # fmt: skip
    linked, covered = entities.held_out_documents(folder, tmp_path / "out")
    first, second = lines(tmp_path / "out", "aida_train")
    # LONDON means the club in both documents, so each has it from the other; only titles give Athletic.
    assert [mention["candidates"] for mention in first["mentions"]] == [[CLUB, CITY, TOWN], [CLUB]]
    # "The Smoke" is in this document alone; "Smoke" is a part of a redirect, but not the whole surface.
    assert [mention["candidates"] for mention in second["mentions"]] == [[], [CLUB, CITY, TOWN]]
    assert (linked, covered) == (4, 3)


def test_an_apostrophe_that_is_a_token_is_the_same_mention(folder, tmp_path):
    found = written(folder, tmp_path / "out", "testb")
    assert {("Lord's", CLUB), ("Lord 's", CLUB)} <= found.keys()  # testa writes the latter


def test_without_redirects_there_are_neither_keys_nor_surfaces_of_them(folder, tmp_path):
    whole = written(folder, tmp_path / "out")
    less = written(folder, tmp_path / "out", "redirects")
    assert not (tmp_path / "out/redirects.jsonl").exists()
    assert {surface for surface, _ in whole.keys() - less.keys()} == {
        "The Big Smoke", "Athletic (sports club)", "London, Canada", "Bistrița", "Bistritz", MYTH, "Chimera",
    }  # fmt: skip


def test_the_head_says_what_was_left_out(folder, tmp_path):
    written(folder, tmp_path / "out", "testb", "redirects")
    assert lines(tmp_path / "out", "entities")[0]["kgkit"]["version"] == "without redirects and testb"


@pytest.mark.parametrize("without", [(), ("testb",), ("redirects",), ("testb", "redirects")])
def test_gold_entities_change_nothing(folder, tmp_path, without):
    aida_kb.write(folder, tmp_path / "gold", without)
    other = {
        split: [
            {**row, "mentions": [{**mention, "entity": MYTH} for mention in row["mentions"]]} for row in rows
        ]
        for split, rows in DOCUMENTS.items()
    }
    aida_kb.write(slice_of(tmp_path / "elsewhere", other), tmp_path / "other", without)
    assert contents(tmp_path / "gold") == contents(tmp_path / "other")


def test_without_testb_no_word_of_its_documents_is_read(folder, tmp_path):
    aida_kb.write(folder, tmp_path / "whole", ("testb",))
    (folder / "aida_testb.jsonl.xz").unlink()
    aida_kb.write(folder, tmp_path / "gone", ("testb",))
    assert contents(tmp_path / "whole") == contents(tmp_path / "gone")


def test_the_files_are_the_same_in_every_process(folder, tmp_path):
    aida_kb.write(folder, tmp_path / "here", ("testb",))
    code = "import sys; from pathlib import Path; from benchmarks import aida_kb\n"
    code += "aida_kb.write(Path(sys.argv[1]), Path(sys.argv[2]), ('testb',))"
    assert run_python(code, folder, tmp_path / "there", PYTHONHASHSEED="7").returncode == 0
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


# -- the command, and the KB --------------------------------------------------------


def command(monkeypatch, *args: object) -> None:
    monkeypatch.setattr("sys.argv", ["aida_kb", *map(str, args)])
    aida_kb.main()


def test_the_command_writes_where_it_is_told_and_counts(folder, tmp_path, monkeypatch, capsys):
    before = listing(folder)
    command(monkeypatch, tmp_path / "a/b", "--without", "testb", "--data", tmp_path)
    assert capsys.readouterr().err == "6 entities, 19 aliases, 4 triples, 5 redirects\n"
    assert sorted(contents(tmp_path / "a/b")) == [
        "aliases.jsonl", "entities.jsonl", "redirects.jsonl", "triples.jsonl",
    ]  # fmt: skip
    assert listing(folder) == before


@pytest.mark.parametrize("args", [[], ["out", "--without", "train"], ["out", "--data", "nowhere"]])
def test_the_command_says_what_it_needs(args, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        command(monkeypatch, *args)
    assert caught.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("python -m benchmarks.aida_kb: error: ")
    assert not (tmp_path / "out").exists()


def test_the_files_make_a_kb_whose_priors_are_shares_of_links(folder, tmp_path):
    aida_kb.write(folder, tmp_path / "out")
    built = kgkit.build_kb("jsonl", tmp_path / "out", name="aida", home=tmp_path / "home")
    assert built.manifest.counts.dropped == {}
    with kgkit.open_kb("aida", tmp_path / "home") as kb:
        found = kb.decode(kb.candidates("london", prefer_case=False))
        # LONDON and London both mean the city; a pair is smoothed by 1.
        assert [candidate.entity.key for candidate in found] == [CITY, TOWN, CLUB]
        priors = [(1800 + 1) / 1953, (100 + 1) / 1953, (50 + 1) / 1953]
        assert [candidate.prior for candidate in found] == pytest.approx(priors)
        assert kb["Bistrița"].key == OLD
        assert kb[MYTH].key == MYTH
        assert [entity.key for entity in kb.neighbors(CITY)] == [TOWN, CLUB]


# -- the real data ------------------------------------------------------------------


@pytest.mark.slow
def test_the_real_slice_has_what_its_readme_says_and_most_gold_entities_without_testb(shared_data, tmp_path):
    folder, out, home = shared_data / "aida", tmp_path / "out", tmp_path / "home"
    counts = aida_kb.write(folder, out, ("testb",))
    assert (counts["entities"] - 1, counts["triples"]) == (36_545, 251_699)
    kgkit.build_kb("jsonl", out, name="aida", home=home)
    found = aida.measure(str(home), "aida", str(folder), ["testa", "testb"])
    assert [found[split]["gold"] for split in ("testa", "testb")] == [4_791, 4_485]
    assert found["testa"]["found"] > 0.999 * 4_791
    assert 0.75 < found["testb"]["found"] / 4_485 < 0.80
