"""Type vocabularies from a folder of lists: what is cleaned, what counts how often, and the recipe types."""

import logging

import pytest

import kgkit
from kb_builders.type_vocabulary import TypeVocabularyBuilder
from kgkit.building import Alias
from kgkit.errors import NotThere, SourceError
from kgkit.inputs.kalm import count_types
from tests.cli_helpers import install_builder, run
from tests.doc_pages import ROOT

DAIRY = """\
'milk', 'Sour Cream', "butter"
cream
caramels,48
Butter
milk \n"""
FRUIT = """\
Cranberries (dry)
Cranberries (fresh, frozen)
(green)
Fruit Juice
cream of coconut
date
"""


@pytest.fixture
def lists(tmp_path):
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "dairy.txt").write_text(DAIRY, encoding="utf-8")
    (folder / "fruit.txt").write_text(FRUIT, encoding="utf-8")
    return folder


@pytest.fixture
def kb(lists, tmp_path):
    kgkit.build_kb(TypeVocabularyBuilder(), lists, home=tmp_path / "home")
    with kgkit.open_kb("type_vocabulary", home=tmp_path / "home") as kb:
        yield kb


def prior(kb, word):
    """Return P(type | word) as a dictionary."""
    return {one.entity.key: round(one.prior, 3) for one in kb.decode(kb.candidates(word))}


def words(kb, kind):
    """Return the surfaces of a type, folded."""
    number = kb.id(kind)
    rows = kb.store.items("aliases")
    return {surface.decode() for surface, _ in rows if number in kb.candidates(surface.decode()).ids}


def test_a_file_is_a_type_and_files_come_by_name(kb):
    assert [(one.key, one.label, one.kind) for one in kb.entities()] == [
        ("dairy", "dairy", "type"),
        ("fruit", "fruit", "type"),
    ]


def test_entries_end_at_commas_and_line_ends_but_not_in_brackets(kb):
    assert words(kb, "dairy") == {"milk", "sour cream", "sour", "cream", "butter", "caramels"}
    assert words(kb, "fruit") == {
        *("cranberries", "dry", "fresh", "frozen", "green", "fruit juice", "fruit", "juice"),
        *("cream of coconut", "cream", "coconut", "date"),
    }


def test_a_word_counts_once_in_each_name_and_remark_of_its_type(kb):
    # dairy: sour cream, cream; fruit: cream of coconut
    counts = count_types(kb, style="recipe").counts
    assert counts["cream"] == {"dairy": 2.0, "fruit": 1.0}
    assert prior(kb, "sour cream") == prior(kb, "Sour") == {"dairy": 1.0}
    assert prior(kb, "of") == prior(kb, "48") == {}


def test_capitals_of_a_list_are_kept_and_a_look_up_reads_any(kb):
    for word in ("butter", "Butter", "BUTTER", "sour"):
        assert prior(kb, word) == {"dairy": 1.0}
    counts = count_types(kb).counts
    assert counts["Cream"] == {"dairy": 1.0} and counts["cream"] == {"dairy": 1.0, "fruit": 1.0}
    assert {"Sour", "Cranberries", "Fruit"} <= counts.keys() and not {"sour", "Butter"} & counts.keys()


def test_a_list_of_names_has_their_words_without_function_words(tmp_path):
    (tmp_path / "band.txt").write_text("The Who, Bank of Scotland (UK)\nthe who\n", encoding="utf-8")
    records = TypeVocabularyBuilder().observe(tmp_path, "all")
    surfaces = {record.surface: record.count for record in records if isinstance(record, Alias)}
    assert surfaces == dict.fromkeys(["The Who", "Who", "Bank of Scotland", "Bank", "Scotland", "UK"], 1.0)


def test_what_was_cleaned_is_told_with_the_type(kb):
    assert kb["dairy"].attributes == {
        "file": "dairy.txt",
        "entries": 8,  # pieces between commas and line ends, as they are
        "names": 5,
        "words": 5,
        "cleaned": {
            "quotation marks": 3,
            "white space around a line": 1,
            "without a letter": 1,
            "written twice": 2,  # butter, milk
        },
    }
    fruit = kb["fruit"].attributes
    assert (fruit["entries"], fruit["names"]) == (7, 5)
    assert fruit["cleaned"] == {"brackets": 3}


def test_it_is_logged_too(lists, caplog):
    with caplog.at_level(logging.INFO):
        list(TypeVocabularyBuilder().observe(lists, "all"))
    assert "dairy.txt" in caplog.text and "quotation marks" in caplog.text


@pytest.mark.parametrize(
    ("line", "surfaces"),
    [
        ("it's", {"it's"}),  # no quotation marks around it
        ("ramen-style", {"ramen-style"}),
        ("B-52's, h20", {"B-52's", "h20"}),
        ("salt (sea) flakes", {"salt flakes", "salt", "sea", "flakes"}),
        ("salt (sea", {"salt (sea", "salt", "sea"}),  # a bracket that is never closed is no remark
        ("nuts (all), seeds", {"nuts", "seeds"}),
        ("“milk”", {"milk"}),
        ("''", set()),
        ("牛奶，milk", {"牛奶，milk"}),  # another comma: spelling is the list's business
        ("sour  cream", {"sour cream", "sour", "cream"}),
        ("Cream (of the cream)", {"Cream"}),  # once, as it is spelled first
    ],
)
def test_odd_entries(tmp_path, line, surfaces):
    (tmp_path / "odd.txt").write_text(f"{line}\n", encoding="utf-8")
    records = TypeVocabularyBuilder().observe(tmp_path, "all")
    assert {record.surface for record in records if isinstance(record, Alias)} == surfaces


def test_files_that_are_no_lists_are_passed_over(lists):
    (lists / "README.md").write_text("not a type")
    (lists / ".hidden.txt").write_text("not a type")
    (lists / "folder.txt").mkdir()
    assert [path.name for path in TypeVocabularyBuilder().look(lists).read] == ["dairy.txt", "fruit.txt"]


def test_a_source_that_is_no_folder_of_lists_is_refused(lists, tmp_path):
    builder, home = TypeVocabularyBuilder(), tmp_path / "home"
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotThere, match="no folder"):
        kgkit.build_kb(builder, tmp_path / "nowhere", home=home)
    with pytest.raises(SourceError, match="is a file; name the folder"):
        kgkit.build_kb(builder, lists / "dairy.txt", home=home)
    with pytest.raises(SourceError, match=r"holds no file TYPE\.txt"):
        kgkit.build_kb(builder, tmp_path / "empty", home=home)
    (lists / "nothing.txt").write_text("\n")
    with pytest.raises(SourceError, match=r"nothing\.txt:1: is empty"):
        kgkit.build_kb(builder, lists, home=home)


def test_a_vocabulary_is_built_and_shown_from_the_command_line(lists, tmp_path, monkeypatch):
    install_builder(tmp_path / "site", "type_vocabulary", "kb_builders.type_vocabulary:TypeVocabularyBuilder")
    monkeypatch.syspath_prepend(tmp_path / "site")
    home = ("--home", tmp_path / "home")
    built = run("build-kb", "type_vocabulary", "--name", "food", lists, *home)
    assert built.code == 0, built.err
    shown_text = run("show", "dairy", "--kb", "food", *home)
    assert "quotation marks: 3" in shown_text.out


# -- the types of the recipes -------------------------------------------------------

ENTRIES = {
    "dairy": 41, "drinks": 35, "fruits": 48, "grains": 59,
    "proteins": 144, "seasonings": 79, "sides": 65, "vegetables": 71,
}  # fmt: skip


@pytest.fixture(scope="module")
def recipe(shared_data, tmp_path_factory):
    home = tmp_path_factory.mktemp("recipe")
    source = shared_data / "recipe/superingredients"
    kgkit.build_kb(TypeVocabularyBuilder(), source, name="recipe", home=home)
    with kgkit.open_kb("recipe", home=home) as kb:
        yield kb


def test_every_entry_of_the_recipe_types_is_read(recipe):
    assert {one.key: one.attributes["entries"] for one in recipe.entities()} == ENTRIES


def test_the_oddities_of_the_recipe_types_are_cleaned(recipe):
    assert prior(recipe, "buttermilk") == {"dairy": 1.0}  # from the quoted list
    assert prior(recipe, "caramels") == {"dairy": 1.0}  # from `caramels,48`
    assert prior(recipe, "mandarin") == {"fruits": 1.0}  # from a remark in brackets
    assert prior(recipe, "mayoniase") == {"sides": 1.0}  # spelt as it is
    assert prior(recipe, "olive") == {"proteins": 0.5, "sides": 0.5}
    assert prior(recipe, "green")["vegetables"] > 0.5  # `(green)` and Green Chilies against green scallions


def test_the_manual_gives_the_numbers_of_the_recipe_types(recipe):
    page = (ROOT / "docs/type-vocabularies.md").read_text(encoding="utf-8")
    for one in recipe.entities():
        told = one.attributes
        assert f"| `{one.key}` | {told['entries']} | {told['names']} | {told['words']} |" in page
