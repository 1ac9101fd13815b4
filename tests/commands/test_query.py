"""`kgkit show`, `path` and `candidates`."""

import json

import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.commands.ranked import meaning_of
from tests.cli_helpers import build_mini, on_terminal, run
from tests.old_format import publish_as_format_2
from tests.toys import build_toy


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("mini"))


def rows(text):
    """Return the lines of a table in a pipe, without its headings."""
    return [line.split("\t") for line in text.splitlines()[1:]]


def hub(count):
    """Return the records of an entity with so many neighbours."""
    around = [Entity(f"e{number}") for number in range(count)]
    return [Entity("hub"), *around, *(Triple("hub", "has", entity.key) for entity in around)]


# -- show -------------------------------------------------------------------


def test_show_gives_the_entity_and_its_neighbours_as_json(home):
    card = json.loads(run("show", "dog.n.01", "--home", home, "--json").out)
    assert card["key"] == "dog.n.01"
    assert card["description"] == "a member of the genus Canis"
    assert card["attributes"]["lexfile"] == "noun.animal"
    assert card["out"]["hypernym"] == [{"key": "animal.n.01", "label": "animal"}]
    assert card["out"]["hyponym"] == [{"key": "puppy.n.01", "label": "puppy"}]
    assert [entity["key"] for entity in card["in"]["lemma_in_synset"]] == [
        "dog%1:05:00::", "domestic_dog%1:05:00::", "canis_familiaris%1:05:00::",
    ]  # fmt: skip


def test_show_gives_the_surfaces_of_an_entity_and_its_address(home):
    card = json.loads(run("show", "dog.n.01", "--home", home, "--json").out)
    assert [surface["surface"] for surface in card["surfaces"]] == ["dog", "Canis familiaris", "domestic dog"]
    assert card["surfaces"][0].keys() == {"surface", "prior", "count", "sense"}
    assert card["url"] == "https://en-word.net/lemma/dog"
    assert "ids" not in card
    shown = run("show", "dog.n.01", "--home", home).out
    assert "\n  url: https://en-word.net/lemma/dog\n" in shown
    assert "Canis familiaris 1.00; domestic dog 1.00\n" in shown


def test_surfaces_are_cut_as_neighbours_are(tmp_path):
    names = [Alias(f"name {letter}", "e", 1) for letter in "abcde"]
    home = build_toy(tmp_path, pages=[Entity("e"), *names]).path.parents[3]
    shown = run("show", "e", "-n", "2", "--home", home).out
    assert "  surfaces: name a 1.00; name b 1.00; … and 3 more\n" in shown
    assert "name e 1.00\n" in run("show", "e", "--home", home).out


def test_a_build_of_an_older_format_is_shown_with_the_command_that_gives_it_surfaces(tmp_path):
    built = build_toy(tmp_path)
    home = built.path.parents[3]
    publish_as_format_2(built.path, home, "old")
    shown = run("show", "Apple", "--kb", "old", "--home", home)
    assert shown.code == 0 and "surfaces: not known. old@" in shown.out
    assert "run `kgkit build-kb toy --name old" in shown.out
    assert "surfaces" not in json.loads(run("show", "Apple", "--kb", "old", "--home", home, "--json").out)


def test_what_is_told_from_one_side_is_not_told_again_from_the_other(home):
    card = json.loads(run("show", "dog.n.01", "--home", home, "--json").out)
    assert set(card["out"]) & set(card["in"]) == set()
    assert "hypernym" not in card["in"]


def test_a_card_in_a_pipe_has_a_line_for_each_neighbour(home):
    lines = run("show", "dog.n.01", "--home", home).out.splitlines()
    assert lines[0].startswith("dog.n.01  dog  synset · n")
    assert "hyponym\tpuppy.n.01\ta young dog" in lines
    assert "← lemma_in_synset\tdog%1:05:00::\tdog" in lines


def test_a_long_list_of_neighbours_is_cut_and_says_by_how_much(home):
    assert "← lemma_in_synset\t… and 2 more" in run("show", "dog.n.01", "-n", "1", "--home", home).out
    for args in ["-n", "0"], ["-n", "2"], []:
        assert " more" not in run("show", "dog.n.01", *args, "--home", home).out


def test_on_a_terminal_a_list_is_cut_without_being_asked(tmp_path):
    home = build_toy(tmp_path, pages=hub(12)).path.parents[3]
    assert "… and 2 more" in on_terminal("show", "hub", "--home", home).out
    assert "more" not in run("show", "hub", "--home", home).out
    build_toy(tmp_path, pages=hub(11))
    assert "… and" not in on_terminal("show", "hub", "--home", home).out


def test_a_word_that_is_no_key_names_the_entities_it_may_mean(home):
    done = run("show", "dog", "--home", home)
    assert (done.code, done.out) == (3, "")
    assert "no entity 'dog' in knowledge base 'mini'; did you mean dog.n.01, " in done.err


@pytest.mark.parametrize("key", ["dog.n.09", "domestic dgo", "Domestic Dog", "dog%1:99:99::"])
def test_a_key_that_is_slightly_wrong_finds_the_right_one(home, key):
    done = run("show", key, "--home", home)
    assert done.code == 3
    assert "dog.n.01" in done.err


def test_a_key_like_nothing_in_the_kb_says_what_to_do_next(home):
    done = run("show", "qqqqqq", "--home", home)
    assert done.code == 3
    assert "`kgkit candidates TEXT --kb mini`" in done.err


def test_another_key_of_an_entity_shows_it(toy_home):
    card = json.loads(run("show", "Apples", "--home", toy_home, "--json").out)
    assert card["key"] == "Apple"
    assert card["types"] == ["food"]
    assert card["out"] == {"in_category": [{"key": "Fruit", "label": "Fruit"}]}
    assert card["in"] == {"mentions": [{"key": "Apple_Inc.", "label": "Apple Inc."}]}


def test_candidates_of_a_kb_without_senses_have_none(toy_home):
    found = json.loads(run("candidates", "apple", "--home", toy_home, "--json").out)
    assert {each["sense"] for each in found} == {None}
    assert "Apple_Inc." in on_terminal("candidates", "Apple", "--home", toy_home).out
    done = run("candidates", "apple", "--pos", "n", "--home", toy_home)
    assert (done.code, done.err) == (2, "error: knowledge base 'toy' has no parts of speech\n")


@pytest.mark.slow
def test_texts_of_a_kb_are_shown_as_they_are_not_obeyed(tmp_path):
    evil = Entity(
        "k[bold]", "[red]l[/red]", "a [link=x]b[/link]\x1b[31m\tc\nd :smile:", attributes={"[i]": "[/x]"}
    )
    told = [evil, Alias("evil", "k[bold]", 1), Triple("k[bold]", "is", "k[bold]")]
    home = build_toy(tmp_path, pages=told).path.parents[3]
    for shown in (
        on_terminal("show", "k[bold]", "--home", home, colour=True).out,
        run("show", "k[bold]", "--home", home).out,
    ):
        assert "[red]l[/red]" in shown
        assert "a [link=x]b[/link]�[31m c d :smile:" in shown
        assert "[i]: [/x]" in shown.replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "a [link=x]b[/link]�[31m c d :smile:" in on_terminal("candidates", "evil", "--home", home).out


# -- path -------------------------------------------------------------------


def test_a_path_is_a_triple_a_line(home):
    assert rows(run("path", "puppy.n.01", "mouse.n.01", "--home", home).out) == [
        ["puppy.n.01", "hypernym", "dog.n.01"],
        ["dog.n.01", "hypernym", "animal.n.01"],
        ["animal.n.01", "hyponym", "mouse.n.01"],
    ]


def test_a_path_as_json_is_a_list_of_triples(home):
    assert json.loads(run("path", "puppy.n.01", "dog.n.01", "--home", home, "--json").out) == [
        {"subject": "puppy.n.01", "relation": "hypernym", "object": "dog.n.01"}
    ]


def test_a_path_keeps_to_the_relations_it_is_given(home):
    assert run("path", "dog.n.01", "puppy.n.01", "-r", "hypernym", "--home", home).code == 0
    done = run("path", "dog.n.01", "puppy.n.01", "--relation", "antonym", "--home", home)
    assert (done.code, done.out) == (3, "")
    assert "no path" in done.err
    assert run("path", "dog.n.01", "puppy.n.01", "-r", "hypernim", "--home", home).code == 2


def test_a_path_to_itself_has_no_step(home):
    assert run("path", "dog.n.01", "dog.n.01", "--home", home) == (
        0,
        "",
        "dog.n.01 is dog.n.01: the path is empty\n",
    )
    assert json.loads(run("path", "dog.n.01", "dog.n.01", "--json", "--home", home).out) == []


def test_both_ends_of_a_path_have_to_be_there(home):
    assert run("path", "dog", "puppy.n.01", "--home", home).code == 3
    assert run("path", "dog.n.01", "puppy", "--home", home).code == 3


def test_a_path_on_a_terminal_has_arrows(home):
    assert on_terminal("path", "dog%1:05:00::", "puppy.n.01", "--home", home).out.splitlines() == [
        "dog%1:05:00::",
        "  → lemma_in_synset  dog.n.01",
        "  → hyponym          puppy.n.01",
    ]
    assert on_terminal("path", "dog.n.01", "dog%1:05:00::", "--home", home).out.splitlines() == [
        "dog.n.01",
        "  ← lemma_in_synset  dog%1:05:00::",
    ]


# -- candidates -------------------------------------------------------------


def test_candidates_come_best_first_with_their_senses(home):
    found = json.loads(run("candidates", "dog", "--home", home, "--json").out)
    assert [(each["entity"], each["sense"]) for each in found[:2]] == [
        ("dog.n.01", "dog%1:05:00::"), ("frump.n.01", "dog%1:18:01::"),
    ]  # fmt: skip
    assert sum(each["prior"] for each in found) == pytest.approx(1)
    assert found[0].keys() == {"entity", "sense", "prior", "label", "pos", "description"}


def test_candidates_in_a_pipe_are_tab_separated_under_headings(home):
    lines = run("candidates", "puppy", "--home", home).out.splitlines()
    assert lines == [
        "prior\tentity\tsense\tlabel\tmeaning",
        "1.0000\tpuppy.n.01\tpuppy%1:05:00::\tpuppy\ta young dog",
    ]


def test_candidates_are_cut_and_chosen_by_part_of_speech(home):
    assert len(rows(run("candidates", "well", "-k", "2", "--home", home).out)) == 2
    assert {row[1] for row in rows(run("candidates", "well", "--pos", "v", "--home", home).out)} == {
        "well.v.01"
    }
    assert {row[1] for row in rows(run("candidates", "good", "--pos", "ADJ", "--home", home).out)} == {
        "good.a.01", "beneficial.s.01",
    }  # fmt: skip
    done = run("candidates", "well", "--pos", "x", "--home", home)
    assert done.code == 2
    assert "there are: n, v, a, s, r" in done.err


def test_an_inflected_word_has_the_candidates_of_its_lemma(home):
    assert rows(run("candidates", "mice", "--home", home).out)[0][1] == "mouse.n.01"
    assert len(rows(run("candidates", "dogs", "-k", "1", "--home", home).out)) == 1


def test_a_misspelt_word_is_found_only_when_asked_for(home):
    done = run("candidates", "zoolagy", "--home", home)
    assert (done.code, done.out) == (1, "")
    assert "--fuzzy" in done.err
    assert json.loads(run("candidates", "zoolagy", "--home", home, "--json").out) == []
    assert rows(run("candidates", "zoolagy", "--fuzzy", "--home", home).out)[0][1] == "zoology.n.01"


@pytest.mark.parametrize(
    ("key", "label", "description", "meaning"),
    [
        ("E007", "Hans M\u00fcller", "graph embeddings", "Hans M\u00fcller: graph embeddings"),
        ("hangzhou", "\u676d\u5dde", "a city", "\u676d\u5dde: a city"),
        ("dog.n.01", "dog", "a canine", "a canine"),
        ("Avon_(Bristol)", "River Avon", "a river", "a river"),
        ("E007", "Hans M\u00fcller", "", "Hans M\u00fcller"),
        ("E007", "", "graph embeddings", "graph embeddings"),
    ],
)
def test_the_meaning_has_the_label_where_the_key_has_no_word_of_it(key, label, description, meaning):
    assert meaning_of(Entity(key, label, description)) == meaning
