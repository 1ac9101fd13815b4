"""`kgkit kb check`: names that are easily linked wrongly, in a knowledge base and in texts."""

import json

import pytest

import kgkit
from kgkit.candidates.doubtful_names import doubtful_names
from kgkit.linking import auto
from tests.cli_helpers import run

PEOPLE = [
    {"key": "p1", "label": "Theresa May", "aliases": ["May"]},
    {"key": "p2", "label": "Peter May", "aliases": ["May"]},
    {"key": "p3", "label": "Ed Stone", "aliases": ["Ed"]},
    {"key": "t1", "label": "Nice"},
    {"key": "t2", "label": "London"},
    {"key": "t3", "label": "London, Ontario", "aliases": ["London"]},
    {"key": "t4", "label": "Bath", "aliases": [{"text": "Tidewick", "count": 3}]},
    {"key": "t5", "label": "Tidewick Hall", "aliases": [{"text": "Tidewick", "count": 1}]},
    {"key": "b1", "label": "The Best"},
    {"key": "m1", "label": "737"},
]


@pytest.fixture
def home(tmp_path):
    kgkit.build_kb("jsonl", PEOPLE, name="people", home=tmp_path, language="en")
    return tmp_path


def found(home, name):
    with kgkit.open_kb(name, home=home) as kb:
        return {
            each.name: (each.sort, [kb[number].key for number in each.ids]) for each in doubtful_names(kb)
        }


def check(home, *args):
    done = run("kb", "check", "--home", home, *args)
    assert done.code == 0, done.err
    return done


def test_names_are_doubtful_by_their_letters_as_words_and_where_none_of_their_entities_is_likelier(home):
    assert found(home, "people") == {
        "737": ("number", ["m1"]), "Ed": ("short", ["p3"]), "May": ("word", ["p1", "p2"]),
        "Nice": ("word", ["t1"]), "Bath": ("word", ["t4"]), "The Best": ("word", ["b1"]),
        "London": ("shared", ["t2", "t3"]),
    }  # fmt: skip


def test_of_many_names_those_of_some_entities_are_looked_at(home):
    with kgkit.open_kb("people", home=home) as kb:
        every = {each.name for each in doubtful_names(kb)}
        some = {each.name for each in doubtful_names(kb, entities=3)}
        assert some < every and some
        assert {each.name for each in doubtful_names(kb, entities=1_000)} == every


def test_in_a_list_of_terms_words_of_several_parts_of_speech_are_doubtful(tmp_path):
    names = ("oak", "poppy", "weft", "heddle", "warp", "Size", "pile", "pile cloth", "may", "737")
    terms = [{"key": word, "label": word} for word in names]
    kgkit.build_kb("jsonl", terms, name="terms", home=tmp_path, language="en")
    assert {name: sort for name, (sort, _) in found(tmp_path, "terms").items()} == {
        "737": "number", "warp": "word", "Size": "word", "pile": "word", "may": "word",
    }  # fmt: skip


def test_signs_are_no_numbers(tmp_path):
    names = ("$", "-", "…", "———", "→", "25", "½", "1,000", "٣", "ﬁlzer")
    kgkit.build_kb("jsonl", [{"key": name, "label": name} for name in names], name="signs", home=tmp_path)
    assert {name: sort for name, (sort, _) in found(tmp_path, "signs").items()} == (
        dict.fromkeys(names[:5], "sign") | dict.fromkeys(names[5:9], "number")
    )


@pytest.mark.parametrize(("language", "told"), [("en", False), ("en-GB", False), ("de", True), (None, True)])
def test_the_languages_whose_words_are_not_known_are_named(tmp_path, language, told):
    towns = [{"key": "t1", "label": "Essen"}, {"key": "t2", "label": "Bonn"}]
    kgkit.build_kb("jsonl", towns, name="towns", home=tmp_path, language=language)
    err = check(tmp_path, "towns").err
    assert ("--texts" in err) == told and ((language or "English") in err) == told


def test_in_a_vocabulary_words_are_what_is_sought(tmp_path):
    names = [f"Stone {number}" for number in range(30)]
    records = [{"key": "thing", "label": "Stone", "aliases": names}]
    kgkit.build_kb("jsonl", records, name="kinds", home=tmp_path, language="en")
    assert found(tmp_path, "kinds") == {}


def test_one_letter_is_short_in_every_script_and_two_are_where_there_is_case(tmp_path):
    names = [{"key": name, "label": name} for name in ("沪", "北京", "ГД", "ЦСКА")]
    kgkit.build_kb("jsonl", names, name="names", home=tmp_path, language="zh")
    assert {name: sort for name, (sort, _) in found(tmp_path, "names").items()} == {
        "沪": "short",
        "ГД": "short",
    }


def test_the_table_has_the_worst_of_each_sort(home):
    lines = check(home, "people", "-n", "1").out.splitlines()
    assert [line.split("\t")[:3] for line in lines[1:]] == [
        ["number", "737", "1"], ["short", "Ed", "1"], ["word", "May", "2"], ["shared", "London", "2"],
    ]  # fmt: skip
    assert "p1 Theresa May; p2 Peter May" in lines[3]
    assert len(check(home, "people", "-n", "0").out.splitlines()) == 8


def test_texts_say_how_often_and_how_a_name_stands_there_and_what_it_is_linked_to(home):
    folder = home / "letters"
    folder.mkdir()
    (folder / "a.txt").write_text("Nice is cheap, which is nice. We may go to London.")
    (folder / "b.txt").write_text("A bath at nice prices. Another nice bath.")
    done = check(home, "people", "--texts", folder, "--jsonl")
    records = {record["name"]: record for record in map(json.loads, done.out.splitlines())}
    assert [*records] == ["Nice", "Bath", "May", "London"]
    nice = records["Nice"]
    assert (nice["why"], nice["occurrences"], nice["lower"], nice["linked"]) == ("word", 4, 3, 1)
    assert nice["entity"] == "t1" and nice["score"] == 0.5 and nice["example"].startswith("Nice is cheap")
    assert (records["Bath"]["lower"], records["Bath"]["linked"], records["Bath"]["entity"]) == (2, 0, None)
    table = check(home, "people", "--texts", folder / "a.txt").out.splitlines()
    assert len(table) == 4 and "t1\t0.50\t[Nice] is cheap" in table[1]


def test_texts_show_which_names_are_words_where_no_lexicon_does(tmp_path):
    towns = [{"key": "t1", "label": "Essen"}, {"key": "t2", "label": "Bonn"}]
    kgkit.build_kb("jsonl", towns, name="towns", home=tmp_path, language="de")
    text = tmp_path / "text.txt"
    text.write_text("Wir essen in Bonn. In Essen essen sie auch.")
    [record] = map(json.loads, check(tmp_path, "towns", "--texts", text, "--jsonl").out.splitlines())
    assert (record["name"], record["why"], record["lower"]) == ("Essen", "word", 2)
    assert found(tmp_path, "towns") == {}


def test_a_plural_is_an_occurrence_of_its_name(tmp_path):
    senses = [{"key": key, "label": name} for key, name in {"s": "seal", "t": "seal", "o": "oak"}.items()]
    kgkit.build_kb("jsonl", senses, name="senses", home=tmp_path, language="en")
    text = tmp_path / "text.txt"
    text.write_text("Two seals and a seal; Seals bark. An oak.")
    [record] = map(json.loads, check(tmp_path, "senses", "--texts", text, "--jsonl").out.splitlines())
    assert (record["name"], record["occurrences"], record["lower"], record["linked"]) == ("seal", 3, 2, 3)


def test_texts_are_linked_by_the_model_that_links_by_default(home, monkeypatch):
    text = home / "text.txt"
    text.write_text("We hope that it will be nice in May. Then Peter May went to Nice.")
    monkeypatch.setattr(auto, "encoder_is_installed", lambda: False)
    linked = {}
    for model in ("prior", "auto"):
        monkeypatch.setenv("KGKIT_MODEL", model)
        done = check(home, "people", "--texts", text, "--jsonl")
        assert ("links-minilm" in done.err) == (model == "auto") and "prior" not in done.err
        linked[model] = {each["name"]: each["linked"] for each in map(json.loads, done.out.splitlines())}
    assert linked == {"prior": {"May": 1, "Nice": 1}, "auto": {"May": 0, "Nice": 1}}


def test_a_folder_without_texts_and_a_knowledge_base_that_is_not_there_are_errors(home):
    (home / "empty").mkdir()
    for args in (("people", "--texts", home / "empty"), ("people", "--texts", home / "none"), ("nobody",)):
        done = run("kb", "check", "--home", home, *args)
        assert done.code == 3 and str(args[-1]) in done.err and not done.out


def test_a_text_that_is_not_utf8_stops_unless_it_is_to_be_skipped(home):
    folder = home / "letters"
    folder.mkdir()
    (folder / "a.txt").write_bytes("A café in Nice".encode("latin-1"))
    (folder / "b.txt").write_text("We met in Nice.")
    command = ("kb", "check", "--home", home, "people", "--texts", folder, "--jsonl")
    stopped, done = run(*command), run(*command, "--bad", "skip")
    assert stopped.code == 1 and str(folder / "a.txt") in stopped.err and not stopped.out
    assert done.code == 0 and str(folder / "a.txt") in done.err
    [record] = map(json.loads, done.out.splitlines())
    assert (record["name"], record["occurrences"]) == ("Nice", 1)


def test_a_build_advises_the_language_that_the_texts_of_a_table_look_like(tmp_path):
    table = tmp_path / "orte.csv"
    table.write_text(
        "id,Name,Beschreibung\n1,Die,ein Ort bei der Stadt\n2,Am,das Dorf auf dem Berg und im Tal\n"
    )
    command = ["build-kb", "table", table, "--name", "orte", "--home", tmp_path]
    err = run(*command).err
    assert "--language de" in err and "--language en" not in err
    assert "--language de" not in run(*command, "--language", "de").err


def test_a_build_names_the_worst_of_each_sort_unless_it_is_a_lexicon(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("id,name\n1,May\n2,Ed\n3,London\n4,London\n")
    command = ["build-kb", "table", table, "--name", "people", "--home", tmp_path]
    [line] = [line for line in run(*command).err.splitlines() if "kb check people" in line]
    assert all(name in line for name in ("(May)", "(Ed)", "(London)", "(may)"))
    assert "(may)" not in run(*command, "--language", "en").err
    table.write_text("id,name\n1,oak\n2,ivy\n3,rose\n4,rose\n")
    assert "(rose)" in run(*command).err
    names = ["may", *(f"Stone {number}" for number in range(30))]
    (tmp_path / "words.jsonl").write_text(json.dumps({"key": "thing", "label": "Stone", "aliases": names}))
    command = ["build-kb", "jsonl", tmp_path / "words.jsonl", "--name", "words", "--home", tmp_path]
    assert "kb check" not in run(*command).err
