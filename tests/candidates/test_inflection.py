"""Plurals and genitives of names, by the language of the KB."""

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.candidates import AliasConfig, AliasGenerator
from kgkit.candidates.inflection import base_forms, base_names
from kgkit.types import Document, Mention
from tests.small_kb import Given
from tests.tries import with_tries

PLANTS = (
    "oak", "lily", "lily of the valley", "Scots pine", "ash", "crocus", "water lily", "sloe", "fungus",
    "tooth", "Holly", "leaf", "peach", "will", "rosemary", "new", "English Oak", "iris", "plane",
)  # fmt: skip
NAMES = (
    "Will", "Jone", "May", "Read", "Rolling Stone", "DVD", "iPhone", "IA", "Boeing 747", "Ford", "Les",
    "bird of paradise", "brother-in-law", "Kennedy", "F-16", "A320", "1990", "May 1990", "80", "Red Fox",
    "Gold Finch", "Blue Lily", "state of the art", "Attorney General", "court martial", "X-Man",
    "Knight of the Table",
)  # fmt: skip
GERMAN = (
    "Goethe", "München", "Thomas Mann", "Haus", "Nil", "Andrea", "Otto von Bismarck", "Berlin", "Faust",
    "Harz", "Jon", "Mann", "SPD", "Erlebnis",
)  # fmt: skip


def names_kb(folder, names, language, generator="alias"):
    """Build a KB of *names*, each an entity of that key."""

    class Builder(Given):
        """A KB in a language."""

    Builder.language = language
    records = [*map(Entity, names), *(Alias(name, name) for name in names)]
    kgkit.build_kb(Builder(records, {}, 1.0, generator), folder, name="names", home=folder)
    return kgkit.open_kb("names", home=folder)


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    with names_kb(tmp_path_factory.mktemp("plants"), PLANTS, "en-GB") as kb:
        yield kb


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    with names_kb(tmp_path_factory.mktemp("names"), NAMES, "") as kb:
        yield kb


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    with names_kb(tmp_path_factory.mktemp("german"), GERMAN, "de") as kb:
        yield kb


def links(kb, text, **config):
    """Return the text of each mention, and the key of its first candidate where that is another."""
    mentions = AliasGenerator(kb, AliasConfig(**config)).mentions(text)
    assert all(text[mention.start : mention.end] == mention.text for mention in mentions)
    keys = [kb.get(int(mention.candidates.ids[0])).key for mention in mentions]
    pairs = zip([mention.text for mention in mentions], keys, strict=True)
    return [text if text == key else f"{text} = {key}" for text, key in pairs]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Under the oaks grew lilies.", ["oaks = oak", "lilies = lily"]),
        ("Oaks! And the OAKS' roots", ["Oaks = oak", "OAKS = oak"]),
        (
            "two Scots pines, a few water\nlilies",
            ["Scots pines = Scots pine", "water\nlilies = water lily"],
        ),
        ("crocuses, irises and sloes", ["crocuses = crocus", "irises = iris", "sloes = sloe"]),
        ("fungi on the teeth of leaves", ["fungi = fungus", "teeth = tooth", "leaves = leaf"]),
        ("the lilies of the valley", ["lilies of the valley = lily of the valley"]),
        ("peaches and ashes", ["peaches = peach", "ashes = ash"]),
        ("English oaks", ["English oaks = English Oak"]),
        (
            "the oaks’ leaves, the oak's leaf",
            ["oaks = oak", "leaves = leaf", "oak", "leaf"],
        ),
        ("hollies", []),  # the KB has it with a capital only
        ("the news", []),
        ("pine, valley, waters", []),
    ],
)
def test_plurals_of_what_the_kb_writes_in_lower_case_are_mentions(plants, text, found):
    assert links(plants, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("She reads to Jones, Wills and Mays.", []),
        ("Reads and Wills and Kennedys", []),
        ("the Rolling Stones and the Fords", []),
        ("May's son likes Will's", ["May", "Will"]),
        ("DVDs for iPhones", ["DVDs = DVD", "iPhones = iPhone"]),
        ("he is less in the IAS", []),
        ("two F-16s, A320s, F 16s", ["F-16s = F-16", "A320s = A320", "F 16s = F-16"]),
        ("the 1990s, in May 1990s, the 80s", ["May"]),
        (
            "Red Foxes, gold finches and BLUE LILIES",
            ["Red Foxes = Red Fox", "gold finches = Gold Finch", "BLUE LILIES = Blue Lily"],
        ),
        ("red foxes", ["red foxes = Red Fox"]),
        (
            "states of the art, states-of-the-art",
            ["states of the art = state of the art", "states-of-the-art = state of the art"],
        ),
        (
            "Attorneys General and courts martial",
            ["Attorneys General = Attorney General", "courts martial = court martial"],
        ),
        ("X-Men are Knights of the Table", []),
        ("birds of paradise at my brothers-in-law", ["birds of paradise = bird of paradise"]),
    ],
)
def test_no_name_is_taken_for_the_plural_of_another(names, text, found):
    assert [link for link in links(names, text) if "law" not in link] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Goethes Haus und Münchens Museen",
            ["Goethes = Goethe", "Haus", "Münchens = München"],
        ),
        (
            "des Hauses, Faust’s und Fausts Ende",
            ["Hauses = Haus", "Faust", "Fausts = Faust"],
        ),
        ("die Romane Thomas Manns", ["Thomas Manns = Thomas Mann"]),
        ("das Reich Otto von Bismarcks.", ["Otto von Bismarcks = Otto von Bismarck"]),
        ("der Berlin-Besuch Andreas' am Nil", ["Berlin", "Nil"]),
        ("Hans, Nils, Andreas und Jons", ["Jons = Jon"]),
        ("des Harzes und des Erlebnisses", ["Harzes = Harz", "Erlebnisses = Erlebnis"]),
    ],
)
def test_genitives_of_a_german_kb_are_mentions(german, text, found):
    assert links(german, text) == found


def test_a_form_that_is_itself_a_name_goes_first(tmp_path):
    with names_kb(tmp_path, ["oak", "oaks", "Mann", "Manns"], "en") as kb:
        assert links(kb, "oaks and oak") == ["oaks", "oak"]


def test_a_name_goes_before_a_shorter_one_with_an_ending(tmp_path):
    with names_kb(tmp_path, ["Goethe", "Goethe-Institut", "Faust", "Fausts Höllenfahrt"], "de") as kb:
        text = "Goethes Fausts Höllenfahrt im Goethe-Institut"
        assert links(kb, text) == [
            "Goethes = Goethe",
            "Fausts Höllenfahrt",
            "Goethe-Institut",
        ]


@pytest.mark.parametrize("language", ["fr", "zh", "ru"])
def test_other_languages_have_no_rules(tmp_path, language):
    with names_kb(tmp_path, ["oak"], language) as kb:
        assert links(kb, "oaks oak") == ["oak"]


@pytest.mark.parametrize("language", ["sv", "nb", "da", "nl"])
def test_genitives_without_an_apostrophe_are_found(tmp_path, language):
    with names_kb(tmp_path, ["Sverige", "Amsterdam"], language) as kb:
        assert links(kb, "Sveriges Amsterdams") == ["Sveriges = Sverige", "Amsterdams = Amsterdam"]


def test_turkish_endings_stand_behind_an_apostrophe(tmp_path):
    with names_kb(tmp_path, ["Ankara", "Türkiye"], "tr") as kb:
        text = "Ankara'da, Türkiye’nin, Ankara'ya"
        assert links(kb, text) == ["Ankara", "Türkiye", "Ankara"]


def test_given_mentions_are_forms_too(plants, german):
    for kb, text, name in [
        (plants, "the oaks", "oak"),
        (plants, "Scots pines", "Scots pine"),
        (german, "Thomas Manns", "Thomas Mann"),
        (plants, "the English Oaks", None),
    ]:
        [document] = AliasGenerator(kb)([Document("1", text, mentions=[Mention(0, len(text), text)])])
        keys = [kb.get(int(number)).key for number in document.mentions[0].candidates.ids]
        assert keys == ([] if name is None else [name])


def test_every_surface_that_occurs_has_its_forms(plants):
    found = links(plants, "Scots pines, water lilies", matches="all")
    assert found == ["Scots pines = Scots pine", "water lilies = water lily", "lilies = lily"]


def test_tries_know_the_forms_of_one_word_and_endings_that_are_added(plants, tmp_path):
    with_tries(plants.store.folder, tmp_path, "tries", 4)
    with kgkit.open_kb("tries", home=tmp_path) as tries:
        for text in "oaks and lilies = two Scots pines by the oaks":
            assert links(tries, text) == links(plants, text)


def test_a_form_is_as_doubtful_as_its_name(german):
    generator = AliasGenerator(german)
    by_text = {
        m.text: m.candidates.link_probability for m in generator.mentions("Der Harz und Münchens Haus")
    }
    assert by_text["Münchens"] == by_text["Haus"] == by_text["Harz"] < 1


@pytest.mark.parametrize("word", ["news", "less", "us", "is", "O", "", "3s", "grass", "always"])
def test_what_is_no_plural_has_no_base(word):
    assert base_forms(word, "en") == []


def test_bases_keep_the_case_of_the_text():
    assert "Lily" in base_forms("Lilies", "en")
    assert "LILY" in base_forms("LILIES", "")
    assert base_forms("PCs", "en") == ["PC"]
    assert "straße" in base_forms("straßes", "de")
    assert list(base_names("", "en")) == []
