"""The benchmark of LAMA on a tiny model, and the knowledge base of LAMA's subjects."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import cloze, lama_kb
from kgkit.evaluation.facts import GOOGLE_RE
from tests.cloze_toys import home_of_animals, masked_lm_folder, write_files

LAMA = {
    "TREx/P19.jsonl": [
        {"sub_uri": "Q1", "sub_label": "Ada", "predicate_id": "P19", "obj_label": "London",
         "evidences": [
             {"sub_surface": "Ada L.", "obj_surface": "London, UK", "masked_sentence": s}
             for s in ("Born in [MASK], she loved LONDON.", "Ada L. came from [MASK].") * 2
         ]},
        {"sub_uri": "Q2", "sub_label": "Bob", "predicate_id": "P19", "obj_label": "Rome", "evidences": []},
    ],
    "TREx/P106.jsonl": [
        {"sub_uri": "Q1", "sub_label": "Ada", "predicate_id": "P106", "obj_label": "poet",
         "evidences": [{"sub_surface": "Ada", "obj_surface": "poet",
                        "masked_sentence": "Ada, a [MASK] of London, wrote poetry; poets go on."}]},
    ],
    "Google_RE/place_of_birth_test.jsonl": [
        {"pred": "/people/person/place_of_birth", "sub": "/m/3", "sub_w": None, "sub_label": "Carl",
         "obj_label": "UK", "obj_aliases": ["Great Britain"], "evidences": [{"url": "x"}],
         "masked_sentences": ["Carl of Duke (UK) , [MASK] , great britain ."]},
    ],
}  # fmt: skip


@pytest.fixture
def lama(tmp_path):
    """A folder of facts as LAMA has them, written by hand."""
    for name, records in LAMA.items():
        path = tmp_path / "lama" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path / "lama"


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_subjects_are_described_by_their_evidence_with_all_objects_hidden(lama, tmp_path):
    assert lama_kb.write(lama, tmp_path) == {"entities": 3, "aliases": 2, "facts": 4}
    _, *entities = lines_of(tmp_path / "kb" / "entities.jsonl")
    assert entities == [
        {"key": "Q1", "label": "Ada", "types": ["person"],
         "description": "Ada, a … of …, wrote …; … go on. Ada L. came from …. Born in …, she loved …."},
        {"key": "Q2", "label": "Bob", "description": "", "types": ["person"]},
        {"key": "/m/3", "label": "Carl", "description": "Carl of Duke (…) , … , … .", "types": ["person"]},
    ]  # fmt: skip
    assert lines_of(tmp_path / "facts.jsonl")[-1] == {
        "subject": "Carl", "relation": "place_of_birth", "object": "UK", "subject_key": "/m/3",
    }  # fmt: skip


def test_strict_entities_are_described_by_other_relations_alone(lama, tmp_path):
    assert lama_kb.write(lama, tmp_path, strict=True)["facts"] == 2
    _, *entities = lines_of(tmp_path / "kb" / "entities.jsonl")
    assert [(entity["key"], entity["description"]) for entity in entities] == [
        ("Q1/P106", "Ada L. came from …. Born in …, she loved …."),
        ("Q1/P19", "Ada, a … of …, wrote …; … go on."),
    ]
    facts = lines_of(tmp_path / "facts.jsonl")
    assert {fact["subject_key"] for fact in facts} == {"Q1/P106", "Q1/P19"}
    aliases = lines_of(tmp_path / "kb" / "aliases.jsonl")
    assert {alias["key"] for alias in aliases} == {"Q1/P106", "Q1/P19"}


@pytest.mark.slow
def test_no_description_of_lama_says_an_object_of_its_subject(shared_data, tmp_path):
    folder = shared_data / "lama"
    assert lama_kb.write(folder, tmp_path) == {"entities": 26_970, "aliases": 28_341, "facts": 28_409}
    descriptions = {
        entity["key"]: entity["description"].lower()
        for entity in lines_of(tmp_path / "kb" / "entities.jsonl")[1:]
    }
    assert sum(map(bool, descriptions.values())) > 26_000
    leaks = [
        fact
        for fact in lines_of(tmp_path / "facts.jsonl")
        if len(fact["object"]) >= lama_kb.SHORT
        and fact["object"].lower() in descriptions[fact["subject_key"]]
    ]
    assert leaks == []
    assert lama_kb.write(folder, tmp_path, strict=True)["facts"] == 1_845


# -- the tables -------------------------------------------------------------


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """All rows of a tiny model, asked for within this process."""
    folder = masked_lm_folder(tmp_path / "bare", tmp_path / "mlm")
    home = home_of_animals(tmp_path / "home", folder)
    facts, templates = write_files(tmp_path)
    lama = cloze.LamaRows(home, str(folder), "animals", "text", facts, templates, device="cpu")
    rows = cloze.all_rows(lama)
    assert len([*(home.path / "asked").glob("names-*.json")]) == 1
    monkeypatch.setattr(lama, "_answer", None)  # what was asked is kept
    assert cloze.all_rows(lama) == rows
    return rows


def test_the_benchmark_has_a_row_of_each_model_for_each_filter(rows, tmp_path):
    page = cloze.write(rows, tmp_path / "out")
    assert page.count("## LAMA, ") == 10
    for name in ("plain", cloze.FREQUENT):
        assert page.count(f"| {name} |") == 8
    assert "5 questions; the vocabulary has 27 whole words" in page.replace("\n", " ")
    assert "| eats | 3 | 2 | 2 | 1 |" in page
    pictures = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert pictures == ["filters-with-vector.svg", "filters.svg", "hits.svg"]


def test_relations_are_averaged_apart_for_each_part_of_lama():
    scores = {"relations": {"P1": {"hits": {"1": 0.5}}, "date_of_birth": {"hits": {"1": 0.0}}}}
    assert cloze.macro(scores, 1, lambda name: name in GOOGLE_RE) == 0
    assert cloze.macro(scores, 1, lambda name: True) == 0.25
    assert cloze.macro(scores, 1, lambda name: False) is None


def row_of(name, hits):
    """A row of a model with the same Hits@k for all k, by relation."""
    relations = {relation: {"hits": dict.fromkeys(map(str, cloze.SHOWN), value)} for relation, value in hits}
    return cloze.Row(name, {("none", "all"): {"vocabulary": {"relations": relations}}}, 0, 0)


def test_differences_are_tested_over_relations_whatever_their_order():
    plain = row_of("plain", [(f"P{number}", 0.1) for number in range(12)])
    better = row_of("better", [(f"P{number}", 0.2) for number in reversed(range(12))])
    mixed = row_of("mixed", [(f"P{number}", 0.1 + 0.1 * (-1) ** number) for number in range(12)])
    table = cloze.difference_table([plain, better, mixed, plain], "none")
    assert table.rows[0][:3] == ["better", "+10.0", f"{2 / 2**12:.4f}"]
    assert table.rows[1][:3] == ["mixed", "+0.0", "1.0000"]
    assert table.rows[2][1:] == ["+0.0", "1.0000"] * 3
    assert tuple(table.columns) == ("", "@1", "p of @1", "@10", "p of @10", "@100", "p of @100")


def test_one_relation_alone_shows_nothing():
    table = cloze.difference_table([row_of("plain", [("P1", 0.1)]), row_of("other", [("P1", 0.9)])], "none")
    assert table.rows[0][1:3] == ["+80.0", "1.0000"]
