"""What the builder makes of WordNet's files, on a WordNet that can be read by eye."""

import re
from pathlib import Path

import pytest

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit.building import Alias
from tests.mini_wordnet import SYNSETS, mini_wordnet


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini")
    return kgkit.build_kb(WordNetBuilder(), mini_wordnet(folder / "wordnet"), home=folder / "home")


@pytest.fixture(scope="module")
def kb(built):
    with kgkit.open_kb("wordnet", home=built.path.parents[3]) as kb:
        yield kb


def build(source: Path) -> kgkit.KnowledgeBase:
    kgkit.build_kb(WordNetBuilder(), source, home=source.parent / "home")
    return kgkit.open_kb("wordnet", home=source.parent / "home")


def edit(file: Path, pattern: str, new: str) -> None:
    text, found = re.subn(pattern, new, file.read_text(encoding="utf-8"), count=1)
    assert found
    file.write_text(text, encoding="utf-8")


def candidates(kb, surface, **options):
    return [(one.entity.key, one.sense) for one in kb.decode(kb.candidates(surface, **options))]


def keys(entities):
    return [entity.key for entity in entities]


# --- nodes -----------------------------------------------------------------


def test_a_synset_has_the_key_that_people_know_and_all_that_its_line_says(kb):
    dog = kb["dog.n.01"]
    assert (dog.label, dog.kind, dog.pos) == ("dog", "synset", "n")
    assert dog.description == "a member of the genus Canis"
    assert dog.attributes == {
        "lexfile": "noun.animal",
        "lemmas": ["dog", "domestic dog", "Canis familiaris"],
        "examples": ["the dog barked"],
    }


def test_a_lemma_sense_has_its_sense_key_count_and_rank(kb):
    dog = kb["dog%1:18:01::"]
    assert (dog.label, dog.kind, dog.pos, dog.description) == ("dog", "lemma", "n", "")
    assert dog.attributes == {"count": 2, "rank": 3}
    assert kb["canis_familiaris%1:05:00::"].label == "Canis familiaris"
    assert keys(kb.neighbors("dog%1:18:01::", "lemma_in_synset")) == ["frump.n.01"]
    assert keys(kb.neighbors("frump.n.01", "lemma_in_synset", "in")) == ["frump%1:18:00::", "dog%1:18:01::"]


def test_a_satellite_is_keyed_by_its_head_and_numbered_among_all_adjectives(kb):
    assert "good%5:00:01:good:00" in kb
    assert kb["good%5:00:01:good:00"].attributes["rank"] == 2
    assert keys(kb.neighbors("good%5:00:01:good:00", "lemma_in_synset")) == ["beneficial.s.01"]


def test_a_syntactic_marker_is_an_attribute_and_in_no_key(kb):
    assert kb["afraid%3:00:00::"].attributes["marker"] == "p"
    assert kb["running%3:44:00::"].attributes["marker"] == "a"
    assert kb["afraid.a.01"].attributes["lemmas"] == ["afraid"]
    assert "marker" not in kb["appalled%5:00:00:afraid:00"].attributes
    # The list of counts has this one with the marker of its head.
    assert kb["aghast%5:00:00:afraid:00"].attributes == {"count": 2, "rank": 1, "marker": "p"}


def test_verb_frames_of_all_words_are_the_synsets_and_those_of_one_the_lemmas(kb):
    assert kb["chase.v.01"].attributes["frames"] == [8, 9]
    assert kb["dog%2:38:00::"].attributes["frames"] == [1]
    assert "frames" not in kb["chase%2:38:00::"].attributes
    assert "frames" not in kb["dog.n.01"].attributes


def test_words_that_share_a_sense_key_are_one_sense_and_are_counted_once(kb):
    assert kb["earth.n.01"].attributes["lemmas"] == ["Earth", "earth", "globe"]
    assert kb["earth%1:17:00::"].label == "Earth"
    assert keys(kb.neighbors("earth.n.01", "lemma_in_synset", "in")) == ["earth%1:17:00::", "globe%1:17:00::"]
    assert candidates(kb, "earth") == [("earth.n.01", "earth%1:17:00::")]


def test_the_count_of_a_shared_sense_key_is_given_once(tmp_path):
    records = WordNetBuilder().observe(mini_wordnet(tmp_path), "all")
    aliases = [record for record in records if isinstance(record, Alias) and record.key == "earth.n.01"]
    assert [(alias.surface, alias.count) for alias in aliases] == [("Earth", 14), ("earth", 0), ("globe", 0)]


def test_ids_of_synsets_come_first(kb):
    assert [entity.kind for entity in kb][: len(SYNSETS)] == ["synset"] * len(SYNSETS)
    assert kb.manifest.counts.entities == {"synset": len(SYNSETS), "lemma": len(kb) - len(SYNSETS)}


@pytest.mark.parametrize(
    ("gloss", "definition", "examples"),
    [
        ("a young dog", "a young dog", []),
        ('young; "a pup"', "young", ["a pup"]),
        ('young; "a pup"; "pups"', "young", ["a pup", "pups"]),
        ('the "young" of a dog', 'the "young" of a dog', []),
        ('young (in "young dog"); "a pup"', 'young (in "young dog")', ["a pup"]),
        ('young, as in "young dog"; "a pup"', 'young, as in "young dog"', ["a pup"]),
        ('young; "a pup"- H.J.Muller; "pups"--Walter Lippman Jr.', "young",
         ["a pup - H.J.Muller", "pups - Walter Lippman Jr."]),
        ('young; "a pup" (Santayana); "the pups" (often ironically)', "young",
         ["a pup (Santayana)", "the pups (often ironically)"]),
        ('young:"a pup"', "young", ["a pup"]),
        ('young : "a pup"; "a whelp" or "pups";', "young", ["a pup", "a whelp", "pups"]),
        ('young, "a pup", "pups".', "young", ["a pup", "pups"]),
        ('young; e.g. "a pup"', "young", ["a pup"]),
        ('(of dogs) "a pup"', "(of dogs)", ["a pup"]),
        ('young; "I see," he said, "a pup"; "pups"', "young", ['I see," he said, "a pup', "pups"]),
        ("young;", "young", []),
        ("young of dogs e.g.", "young of dogs e.g.", []),
        ('young; "a pup"; "pups', "young", ["a pup", "pups"]),  # a mark without a partner
        ('young; "a pup"; the pups"', "young", ["a pup", "the pups"]),
        ('young; the pups"', "young", ["the pups"]),
        ('5" tall', '5" tall', []),
    ],
)  # fmt: skip
def test_an_example_is_what_stands_in_quotation_marks(tmp_path, gloss, definition, examples):
    source = mini_wordnet(tmp_path / "wordnet")
    edit(source / "data.noun", r"\| a young dog", f"| {gloss}")
    with build(source) as kb:
        puppy = kb["puppy.n.01"]
    assert (puppy.description, puppy.attributes.get("examples", [])) == (definition, examples)


# --- relations -------------------------------------------------------------


def test_one_way_pointers_stay_one_way(kb):
    assert keys(kb.neighbors("dog.n.01", "also_see")) == ["hotdog.n.01"]
    assert kb.neighbors("hotdog.n.01", "also_see") == []
    assert keys(kb.neighbors("hotdog.n.01", "also_see", "in")) == ["dog.n.01"]


def test_pointers_from_word_to_word_join_lemma_senses(kb):
    assert keys(kb.neighbors("good%3:00:00::", "antonym")) == ["bad%3:00:00::"]
    assert kb.neighbors("well%3:00:01::", "antonym") == []
    assert keys(kb.neighbors("canine%3:01:00::", "pertainym")) == ["dog%1:05:00::"]
    assert keys(kb.neighbors("running%3:44:00::", "participle")) == ["run%2:38:00::"]


# --- surfaces --------------------------------------------------------------


def test_candidates_are_synsets_with_the_sense_key_of_the_word_that_matched(kb):
    assert candidates(kb, "hot dog") == [("hotdog.n.01", "hot_dog%1:13:00::")]
    assert candidates(kb, "well", pos="r") == [("well.r.01", "well%4:02:00::")]


def test_priors_are_smoothed_counts_and_ties_are_in_wordnets_order(kb):
    found = kb.candidates("dog")
    # 42, 2, 2 (a verb) and 0 times, and one more each.
    assert found.priors.tolist() == pytest.approx([43 / 50, 3 / 50, 3 / 50, 1 / 50])
    assert [key for key, _ in candidates(kb, "dog")] == [
        "dog.n.01",
        "frump.n.01",
        "chase.v.01",
        "hotdog.n.01",
    ]
    assert candidates(kb, "bank")[0] == ("bank.n.01", "bank%1:17:01::")


def test_a_meaning_in_this_very_spelling_is_preferred(kb):
    assert candidates(kb, "Turkey")[0][0] == "turkey.n.02"
    assert candidates(kb, "turkey")[0][0] == "turkey.n.01"


def test_irregular_forms_are_kept_by_part_of_speech(kb):
    assert kb.store.lemmas("mice") == [("mouse", "n")]
    assert kb.store.lemmas("better") == [("good", "a"), ("well", "a"), ("well", "r")]


# --- files -----------------------------------------------------------------


def test_version_3_1_is_read_and_named(tmp_path, kb):
    with build(mini_wordnet(tmp_path / "wordnet", version="3.1")) as other:
        assert other.manifest.source.version == "3.1"
        assert list(other) == list(kb)


def test_files_without_a_header_are_read_too(tmp_path, kb):
    source = mini_wordnet(tmp_path / "wordnet")
    for file in source.iterdir():
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not line.startswith(" ")), encoding="utf-8")
    with build(source) as other:
        assert other.manifest.source.version == ""
        assert list(other) == list(kb)


def test_a_synset_without_a_line_for_its_second_word_has_that_word_without_a_rank(tmp_path):
    source = mini_wordnet(tmp_path / "wordnet")
    edit(source / "index.noun", r"(?m:^domestic_dog .*\n)", "")
    with build(source) as kb:
        assert "rank" not in kb["domestic_dog%1:05:00::"].attributes
        assert candidates(kb, "domestic dog") == [("dog.n.01", "domestic_dog%1:05:00::")]
