"""`kb.search`: keys, surfaces and labels; exactly, by the beginning, by a part."""

import pytest

import kgkit
from kgkit.building import Alias, Entity, Redirect
from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.kb import search
from kgkit.kb.search import suggest_keys
from tests.small_kb import ENDLESS, build, surfaces_kb

RECORDS = [
    Entity("dog", "Dog", kind="page"),
    Entity("hot_dog", "Hot dog", kind="page"),
    Entity("Dogger_Bank", "a bank", kind="place"),
    Entity("cat", "the enemy of dogs", kind="page"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot_dog", 1),
    Alias("dogs of war", "Dogger_Bank", 1),
    Alias("bulldogs", "cat"),
    Redirect("hound", "dog"),
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("search"), RECORDS) as opened:
        yield opened


def found(kb, text, **settings):
    return [(result.entity.key, result.field, result.match) for result in kb.search(text, **settings)]


def test_exact_matches_come_first_then_beginnings_then_parts(kb):
    assert found(kb, "dog") == [
        ("dog", "key", "exact"),
        ("hot_dog", "surface", "exact"),
        ("Dogger_Bank", "surface", "prefix"),
        ("cat", "surface", "part"),
    ]


def test_case_and_spaces_are_folded_and_redirects_followed(kb):
    assert found(kb, "DOGS  OF", k=1) == [("Dogger_Bank", "surface", "prefix")]
    assert found(kb, "Dogger B") == [("Dogger_Bank", "key", "prefix")]
    assert found(kb, "hot dog", k=1) == [("hot_dog", "key", "exact")]
    assert found(kb, "hound", k=1) == [("dog", "key", "exact")]


def test_a_label_that_is_no_surface_is_found_by_a_part(kb):
    [result] = kb.search("enemy of")
    assert (result.entity.key, result.field, result.text) == ("cat", "label", "the enemy of dogs")


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("U.S. Steel Tower", "U.S."), ("U.S. Steel Tower", "U.S. Steel"), ("U.S. Steel Tower", "US Steel"),
        ("St. Louis Arch", "St. Louis"),
        ("St. Louis Arch", "st louis"), ("Old Mt. Baker Lodge", "mt baker"), ("Coca–Cola Arena", "Coca-Cola"),
        ("Agfa Gevaert", "Gevaert"), ("Node.js Foundation", "ode.js"),
    ],
)  # fmt: skip
def test_labels_are_folded_as_surfaces_are(tmp_path, label, text):
    with build(tmp_path, [Entity("it", label), Alias("x", "it")]) as kb:
        assert [(each.key, each.field) for each in kb.search(text)] == [("it", "label")]


def test_capitals_of_labels_are_those_of_their_language(tmp_path):
    records = [{"key": "it", "label": "Eski ILICA Park"}, {"kgkit": {"label_aliases": False}}]
    kgkit.build_kb("jsonl", records[::-1], name="tr", home=tmp_path, language="tr")
    with kgkit.open_kb("tr", home=tmp_path) as kb:
        assert [each.key for each in kb.search("ılıca")] == ["it"]


def test_results_are_limited_by_number_and_kind(kb):
    assert found(kb, "dog", kind="place") == [("Dogger_Bank", "surface", "prefix")]
    assert len(kb.search("dog", k=2)) == 2
    assert kb.search("zebra") == []
    with pytest.raises(UnknownName, match="kind of entity"):
        kb.search("dog", kind="nonsense")
    for wrong in ({"text": " "}, {"text": "dog", "k": 0}):
        with pytest.raises(UsageError):
            kb.search(**wrong)


def test_texts_of_every_script_and_length_are_searched_for(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        assert found(kb, "北京", k=2) == [
            ("Beijing", "surface", "exact"),
            ("Peking_University", "surface", "prefix"),
        ]
        assert found(kb, ENDLESS, k=1) == [("Endless", "surface", "exact")]
        assert kb.search("\udc80") == [] and kb.search("llanfair" * 40, k=1) == []


def test_no_table_is_read_from_end_to_end(kb, monkeypatch):
    read = []
    items = kb.store.items
    monkeypatch.setattr(kb.store, "items", lambda *of: read.append(of) or items(*of))
    assert kb.search("dog", k=9) and kb.search("og", k=1) and kb.search("war", k=1)
    assert ("entities",) not in read and ("aliases",) not in read


def test_what_is_no_text_is_refused(kb):
    for value in (None, 5, b"dog"):
        with pytest.raises(TypeError, match=r"NoneType|int|bytes"):
            kb.search(value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("kestrle.n.01", "kestrel.n.01"),  # two letters in the wrong order
        ("kestrell.n.01", "kestrel.n.01"),
        ("kestral.n.01", "kestrel.n.01"),
        ("kestrl.n.01", "kestrel.n.01"),
        ("estrel.n.01", "kestrel.n.01"),
        ("kestrel.n.02", "kestrel.n.01"),
    ],
)
def test_a_key_with_one_typing_error_suggests_the_key_that_it_was(tmp_path, typed, meant):
    records = [Entity("kestrel.n.01", "hawk"), Entity("wop.n.01", "wop"), Entity("falcon", "falcon")]
    with build(tmp_path, records) as kb:
        assert suggest_keys(kb, typed)[0] == meant
        with pytest.raises(UnknownEntity, match=rf"did you mean {meant}\?"):
            str(kb[typed])


def test_typing_errors_suggest_swapped_letters_first_and_surfaces_before_all(tmp_path):
    records = [Entity("dog.n.01", "hound"), Entity("go.n.01", "game"), Entity("a"), Alias("dgo", "a")]
    with build(tmp_path, records) as kb:
        assert suggest_keys(kb, "dgo.n.01") == ["a"]
    with build(tmp_path / "other", records[:2]) as kb:
        assert suggest_keys(kb, "dgo.n.01") == ["dog.n.01", "go.n.01"]


def test_a_very_long_key_is_not_edited(kb, monkeypatch):
    asked = []
    known = kb.store.id_of
    monkeypatch.setattr(kb.store, "id_of", lambda key: asked.append(key) or known(key))
    suggest_keys(kb, "x" * 65)
    assert asked == []
    suggest_keys(kb, "x" * 10)
    assert 0 < len(asked) < 1_000


# -- names that begin alike ---------------------------------------------------------------


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """A knowledge base of places, whose names begin alike."""
    records = [
        Entity("Paris", "Paris", "A city.", kind="city"),
        Entity("Paris_(Texas)", "Paris (in Texas)", kind="town"),
        Entity("Paris_Hilton", "Paris Hilton", kind="person"),
        Entity("Parish", "parish", kind="thing"),
        Entity("Lutetia", "Lutetia", kind="city"),
        Alias("Paris", "Paris", 90),
        Alias("Paris", "Paris_(Texas)", 10),
        Alias("Paris Hilton", "Paris_Hilton", 7),
        Alias("Parish", "Parish", 5),
        Alias("Lutetia", "Lutetia", 4),
        Alias("Parisii", "Lutetia", 2),
        Alias("Parisii", "Parish", 8),
        Alias("Lutetia Parisiorum", "Lutetia", 3),
    ]
    with build(tmp_path_factory.mktemp("names"), records) as kb:
        yield kb


def keys(kb, text, k=10, **settings):
    return [hit.entity.key for hit in kb.search(text, k, **settings)]


def test_the_key_and_the_meanings_of_the_surface_come_first_best_prior_first(names):
    assert keys(names, "Paris")[:2] == ["Paris", "Paris_(Texas)"]
    hits = names.search("paris", 10)
    assert [(hit.entity.key, hit.match) for hit in hits][:2] == [
        ("Paris", "exact"), ("Paris_(Texas)", "exact"),
    ]  # fmt: skip
    assert hits[0].score == pytest.approx(0.9)


def test_what_begins_so_comes_next_best_prior_first(names):
    hits = names.search("Paris", 10)
    scores = [hit.score for hit in hits if hit.match == "prefix"]
    assert scores == sorted(scores, reverse=True) and len(scores) >= 2


def test_a_typing_error_is_found_by_the_index(names):
    assert keys(names, "Lutecia")[0] == "Lutetia"
    assert names.search("Lutecia", 1)[0].match == "similar"


def test_only_those_of_a_kind_come(names):
    assert keys(names, "Paris", kind="town") == ["Paris_(Texas)"]


def test_a_part_of_a_label_is_found(names):
    (result,) = names.search("exas)", 5)
    assert (result.entity.key, result.match, result.score) == ("Paris_(Texas)", "part", 0.0)


def test_names_in_another_form_are_found_by_their_likeness(names):
    for text in ("Hilton, Paris", "Lutétia", "P. Hilton"):
        (result, *_) = names.search(text)
        assert (result.entity.key, result.match) in (("Paris_Hilton", "similar"), ("Lutetia", "similar"))


def test_a_space_stands_for_the_underscore_of_a_key(names):
    (hit, *_) = names.search("Paris Hilton", 3)
    assert (hit.entity.key, hit.field) == ("Paris_Hilton", "key")


def test_no_more_rows_are_read_than_a_number_of_them(names, monkeypatch):
    monkeypatch.setattr(search, "_MAX_ROWS", 1)
    hits = names.search("par", 10)
    assert 0 < len([hit for hit in hits if hit.match == "prefix"]) <= 3


def test_without_an_index_of_surfaces_there_is_nothing_similar(names, monkeypatch):
    monkeypatch.setattr(names.store, "trigrams", None)
    assert keys(names, "Lutecia") == []
    assert keys(names, "Lutetia")


# -- parts, as a scan of all surfaces and labels finds them ---------------------------------

NAMES = [
    "Quantum mechanics", "quantum field theory", "Exquisite", "xq", "Box-quay", "Dvořák, Antonín", "naïveté",
    "Straße des 17. Juni", "Łódź", "Ćwikła", "Ångström", "U.S. Steel Tower", "U.S.A.", "St. Louis", "Node.js",
    "C++", "C#", "A*", "R&B", "AT&T", "O'Hare", "rock 'n' roll", "1,000 islands", "½ mile", "x²",
    "(the)", "...", "!?", "Tōkyō", "東京都", "北京大学", "日本", "서울특별시", "Москва", "Ёлка", "Αθήνα",
    "हिन्दी", "ไทย", "שלום", "مُحَمَّد",
    "👩‍🚀 space", "😀😀", "🇫🇷 France", "①②③", "No. 5", "ﬁne", "e", "I", "a b c d", "llanfair" * 20,
    "Cafe\u0301 noir", "Coca–Cola", "co\u00adop", "1984", "19 84",
]  # fmt: skip


def texts_in(names):
    """Return texts of every length that are within names, and others."""
    texts = ["zz", "q", "qu", "ß", "é", "-", "–", "'", "’", " x", "\u200b", "y" * 1_000, "京 都", "\ud800"]
    for number, name in enumerate(names):
        length = (1, 2, 3, 4, 7)[number % 5]
        begin = (number * 7 + length) % max(1, len(name) - length + 1)
        texts += [name[begin : begin + length], name[-length:].upper(), name]
    return [text for text in dict.fromkeys(texts) if text.strip()]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A home with `scripts`: names of all kinds, every third a label alone; the last half were added."""
    home = tmp_path_factory.mktemp("scripts")
    head = {"kgkit": {"label_aliases": False}}
    lines = [
        {"key": f"e{number}", "label": name, "aliases": [name] if number % 3 else [f"other {number}"]}
        for number, name in enumerate(NAMES)
    ]
    kgkit.build_kb("jsonl", [head, *lines[: len(lines) // 2]], name="scripts", home=home)
    kgkit.add_to_kb("scripts", [head, *lines[len(lines) // 2 :]], home=home)
    return home


@pytest.fixture(scope="module")
def scanned(scripts):
    """Texts, and what a scan of all surfaces and then of all labels finds: key, field and text."""
    with kgkit.open_kb("scripts", home=scripts) as kb:
        fold = kb.store.folding.fold
        names = [
            (candidate.entity.key, "surface", surface, (surface,))
            for surface in kb.surfaces()
            for candidate in kb.decode(kb.candidates(surface))
        ]
        names += [(each.key, "label", each.label, (fold(each.label), each.label.lower())) for each in kb]
        return {
            text: [
                row for *row, forms in names if (part := fold(text)) and any(part in form for form in forms)
            ]
            for text in texts_in(NAMES)
        }


@pytest.mark.parametrize("way", ["index", "older index", "no index"])
def test_parts_are_those_that_a_scan_finds_in_its_order(scripts, scanned, monkeypatch, way):
    with kgkit.open_kb("scripts", home=scripts) as kb:
        if way != "index":
            monkeypatch.setattr(kb.store, "_labels", None)
        if way == "no index":
            monkeypatch.setattr(kb.store, "trigrams", None)
        parts = 0
        for text, found in scanned.items():
            hits = kb.search(text, 1_000)
            expected = {hit.key: (hit.field, hit.text) for hit in hits if hit.match != "part"}
            for key, *row in found:
                expected.setdefault(key, tuple(row))
            assert [(hit.key, hit.field, hit.text) for hit in hits] == [
                (key, *row) for key, row in expected.items()
            ], text
            assert kb.search(text, 2) == hits[:2]
            parts += sum(hit.match == "part" for hit in hits)
        assert parts > 100


def test_of_many_surfaces_with_a_text_within_the_first_ones_are_read(scripts, monkeypatch):
    with kgkit.open_kb("scripts", home=scripts) as kb:
        everything = kb.search("o", 1_000)
        monkeypatch.setattr(search, "_MAX_PARTS", 4)
        first = kb.search("o", 4)
        assert [hit.key for hit in first] == [hit.key for hit in everything[:4]]
