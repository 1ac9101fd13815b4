"""Names in texts as people write them, beside how a KB writes them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.candidates import AliasConfig, AliasGenerator, LemmaGenerator, SegmentGenerator
from kgkit.store import verify
from kgkit.text import without_accents
from tests.old_format import publish_in_older_format
from tests.tries import with_tries

Pairs = list[tuple[str, str]]


def built(folder, *names: str, language: str | None = None, name: str = "names") -> kgkit.KnowledgeBase:
    records = [{"key": each, "label": each} for each in names]
    kgkit.build_kb("jsonl", records, name=name, home=folder, language=language)
    return kgkit.open_kb(name, home=folder)


def found(kb, text: str) -> Pairs:
    """Return text and key of each mention."""
    mentions = AliasGenerator(kb).mentions(text)
    assert [text[mention.start : mention.end] for mention in mentions] == [each.text for each in mentions]
    return [(each.text, kb.key(each.candidates.ids[0])) for each in mentions if each.candidates]


KINDS = {
    "marks of Arabic and points of Hebrew": (
        ("القاهرة", "محمد صلاح", "ירושלים", "תל־אביב"),
        "اَلْقَاهِرَة، القـــاهرة، مُحَمَّد صَلَاح؛ יְרוּשָׁלַיִם ,תל-אביב",
        [
            ("اَلْقَاهِرَة", "القاهرة"), ("القـــاهرة", "القاهرة"), ("مُحَمَّد صَلَاح", "محمد صلاح"),
            ("יְרוּשָׁלַיִם", "ירושלים"), ("תל-אביב", "תל־אביב"),
        ],
    ),
    "dashes": (
        ("Cauchy–Schwarz inequality", "Mercedes-Benz", "Baden-Baden", "lily-of-the-valley", "Coca Cola"),
        "Cauchy-Schwarz inequality, Mercedes–Benz, Mercedes Benz, Baden−Baden, lily of the valley, Coca–Cola",
        [
            ("Cauchy-Schwarz inequality", "Cauchy–Schwarz inequality"), ("Mercedes–Benz", "Mercedes-Benz"),
            ("Mercedes Benz", "Mercedes-Benz"), ("Baden−Baden", "Baden-Baden"),
            ("lily of the valley", "lily-of-the-valley"), ("Coca–Cola", "Coca Cola"),
        ],
    ),
    "apostrophes": (
        ("O'Neill", "Hawaiʻi", "Côte d’Ivoire"),
        "O’Neill in Hawai'i and Hawai‘i, Cote d'Ivoire",
        [
            ("O’Neill", "O'Neill"), ("Hawai'i", "Hawaiʻi"), ("Hawai‘i", "Hawaiʻi"),
            ("Cote d'Ivoire", "Côte d’Ivoire"),
        ],
    ),
    "characters that nobody sees": (
        ("Angela Merkel", "Donaudampfschiff", "東京"),
        "\ufeffAn\u00adgela\u200b Merkel\u200e, Do\u00adnau\u00addampf\u00adschiff in 東\u200b京",
        [
            ("An\u00adgela\u200b Merkel", "Angela Merkel"),
            ("Do\u00adnau\u00addampf\u00adschiff", "Donaudampfschiff"), ("東\u200b京", "東京"),
        ],
    ),
    "another width": (
        ("IBM", "ガンダム", "AT&T"),
        "ＩＢＭのｶﾞﾝﾀﾞﾑとＡＴ＆Ｔ",
        [("ＩＢＭ", "IBM"), ("ｶﾞﾝﾀﾞﾑ", "ガンダム"), ("ＡＴ＆Ｔ", "AT&T")],
    ),
    "scripts without spaces": (
        ("เชียงใหม่", "ຫຼວງພະບາງ", "မန္တလေး", "សៀមរាប"),
        "ฉันไปเชียงใหม่เมื่อวาน ຂ້ອຍໄປຫຼວງພະບາງ သူသည်မန္တလေးသို့ ខ្ញុំទៅសៀមរាបថ្ងៃនេះ",
        [("เชียงใหม่", "เชียงใหม่"), ("ຫຼວງພະບາງ", "ຫຼວງພະບາງ"), ("မန္တလေး", "မန္တလေး"), ("សៀមរាប", "សៀមរាប")],
    ),
    "full stops of abbreviations": (
        (
            "UK", "U.N.", "U.", "Mt. Everest", "George W. Bush", "Marvel Inc.", "Dow Corp", "J.R.R. Tolkien",
            "A. A. Milne",
        ),
        (
            "U.K., UN, U.N.E.S.C.O, Mt Everest, George W Bush. JRR Tolkien, J. R. R. Tolkien, A.A. Milne.\n"
            "Marvel Inc. and Dow Corp. The"
        ),
        [
            ("U.K.", "UK"), ("UN", "U.N."), ("Mt Everest", "Mt. Everest"),
            ("George W Bush", "George W. Bush"), ("JRR Tolkien", "J.R.R. Tolkien"),
            ("J. R. R. Tolkien", "J.R.R. Tolkien"), ("A.A. Milne", "A. A. Milne"),
            ("Marvel Inc.", "Marvel Inc."), ("Dow Corp", "Dow Corp"),
        ],
    ),
    "some of the accents": (
        ("Antonín Dvořák", "Łódź", "Hồ Chí Minh", "Jürgen Müller", "Schön", "Cote"),
        (
            "Antonín Dvorak, Antonin Dvořák, ANTONIN DVOŘAK; Lódz, Łodz; Hô Chi Minh, Jürgen Mueller and "
            "Juergen Müller; Dvoràk, Hó Chí Minh, Schoñ, Côte"
        ),
        [
            ("Antonín Dvorak", "Antonín Dvořák"), ("Antonin Dvořák", "Antonín Dvořák"),
            ("ANTONIN DVOŘAK", "Antonín Dvořák"), ("Lódz", "Łódź"), ("Łodz", "Łódź"),
            ("Hô Chi Minh", "Hồ Chí Minh"), ("Jürgen Mueller", "Jürgen Müller"),
            ("Juergen Müller", "Jürgen Müller"),
        ],
    ),
    "letters of another language": (
        ("Târgu Mureș", "știință", "Beşiktaş", "کتاب", "علي"),
        "Târgu Mureş, Targu Mureş, ŞTIINŢĂ, Beșiktaș, كتاب, علی",
        [
            ("Târgu Mureş", "Târgu Mureș"), ("Targu Mureş", "Târgu Mureș"), ("ŞTIINŢĂ", "știință"),
            ("Beșiktaș", "Beşiktaş"), ("كتاب", "کتاب"), ("علی", "علي"),
        ],
    ),
    "quotes and dashes of Hebrew": (
        ('צה"ל', "דובר צה״ל", "תל־אביב", "בית ספר", '"Weird Al" Yankovic'),
        "צה״ל צה″ל צה”ל, דובר צה\"ל; תל אביב תל–אביב בית־ספר, “Weird Al” Yankovic",
        [
            ("צה״ל", 'צה"ל'), ("צה″ל", 'צה"ל'), ("צה”ל", 'צה"ל'), ('דובר צה"ל', "דובר צה״ל"),
            ("תל אביב", "תל־אביב"), ("תל–אביב", "תל־אביב"), ("בית־ספר", "בית ספר"),
            ("“Weird Al” Yankovic", '"Weird Al" Yankovic'),
        ],
    ),
    "and": (
        ("Smith & Wesson", "Johnson and Johnson", "H&M", "Bang & Olufsen", "salt and pepper"),
        "Smith and Wesson, Smith&Wesson, Johnson & Johnson, H & M, bang and Olufsen, Salt & pepper, Smith",
        [
            ("Smith and Wesson", "Smith & Wesson"), ("Smith&Wesson", "Smith & Wesson"),
            ("Johnson & Johnson", "Johnson and Johnson"), ("H & M", "H&M"),
            ("bang and Olufsen", "Bang & Olufsen"), ("Salt & pepper", "salt and pepper"),
        ],
    ),
    "commas": (
        (
            "Washington, D.C.", "Portland OR", "Columbia SC", "Apple Inc.", "Acme, LLC",
            "Martin Luther King Jr.", "Sale On",
        ),
        (
            "Washington DC, Washington D.C., Washington, DC, Portland, OR, Columbia, SC, Apple, Inc. and "
            "Acme LLC; Martin Luther King, Jr. in the sale, on Monday"
        ),
        [
            ("Washington DC", "Washington, D.C."), ("Washington D.C.", "Washington, D.C."),
            ("Washington, DC", "Washington, D.C."), ("Portland, OR", "Portland OR"),
            ("Columbia, SC", "Columbia SC"), ("Apple, Inc.", "Apple Inc."), ("Acme LLC", "Acme, LLC"),
            ("Martin Luther King, Jr.", "Martin Luther King Jr."),
        ],
    ),
    "degrees and numbers": (
        ("Ph.D.", "MSc", "B.Eng.", "No. 10", "Chanel No 5", "Ed.D. thesis", "X.com"),
        "a PhD, Ph.D. or Ph. D. phd; M.Sc. BEng, No 10 no 10, Chanel No. 5, EdD thesis; Xcom",
        [
            ("PhD", "Ph.D."), ("Ph.D.", "Ph.D."), ("Ph. D.", "Ph.D."), ("M.Sc.", "MSc"), ("BEng", "B.Eng."),
            ("No 10", "No. 10"), ("Chanel No. 5", "Chanel No 5"), ("EdD thesis", "Ed.D. thesis"),
        ],
    ),
    "accents": (
        ("Antonín Dvořák", "Łódź", "Gerd Müller", "Schön", "côté"),
        "Antonin Dvorak in Lodz, Gerd Muller, Gerd Mueller; he was schon, cote and Dvoràk",
        [
            ("Antonin Dvorak", "Antonín Dvořák"), ("Lodz", "Łódź"), ("Gerd Muller", "Gerd Müller"),
            ("Gerd Mueller", "Gerd Müller"),
        ],
    ),
    "signs of several characters": (
        ("👩", "👧", "🇪🇫", "👍"),
        "👨\u200d👩\u200d👧 🇩🇪🇫🇷 👍🏽 👍",
        [("👍", "👍")],
    ),
}  # fmt: skip
each_kind = pytest.mark.parametrize(("names", "text", "expected"), KINDS.values(), ids=KINDS)


@each_kind
def test_names_are_found_as_people_write_them(tmp_path, names, text, expected):
    with built(tmp_path, *names, language="en") as kb:
        assert found(kb, text) == expected
        assert verify(kb.store.folder) == []
        with_tries(kb.store.folder, tmp_path, "tries", size=4)
        with kgkit.open_kb("tries", home=tmp_path) as tries:
            assert found(tries, text) == expected


@each_kind
def test_all_engines_and_additions_know_the_writings(tmp_path, names, text, expected):
    first, *others = names
    with built(tmp_path, *names, language="en") as kb, built(tmp_path, first, language="en", name="first"):
        records = tmp_path / "names.jsonl"
        kgkit.export_kb(kb, records)
        tables = kgkit.build_kb(
            "jsonl", records, name="disk", home=tmp_path, engine="local", language="en"
        ).manifest
        assert tables.tables == kb.manifest.tables
        kgkit.add_to_kb("first", [{"key": each, "label": each} for each in others], home=tmp_path)
        with kgkit.open_kb("first", home=tmp_path) as grown:
            assert found(grown, text) == expected
            assert verify(grown.store.folder) == []


def test_a_name_that_is_written_so_goes_first(tmp_path):
    with built(tmp_path, "Milošević", "Milosevic", "US", "U.S.", "Coca Cola", "Coca-Cola") as kb:
        names = ["Milošević", "Milosevic", "US", "U.S.", "Coca Cola", "Coca-Cola"]
        assert found(kb, ", ".join(names)) == [(name, name) for name in names]
        assert len(kb.candidates("Milosevic")) == 1


def test_a_writing_of_several_names_means_all_of_them(tmp_path):
    with built(tmp_path, "Dvořák", "Dvorák") as kb:
        candidates = kb.candidates("Dvorak")
        assert sorted(map(kb.key, candidates.ids)) == ["Dvorák", "Dvořák"]
        assert candidates.priors.tolist() == [0.5, 0.5]


def test_turkish_capitals_are_those_of_its_letters(tmp_path):
    names = ("İzmir", "Isparta", "Kırıkkale", "Işıl Yücesoy")
    with built(tmp_path, *names, language="tr") as kb:
        text = "İZMİR, ISPARTA, KIRIKKALE ve IŞIL YÜCESOY; Izmir, Kirikkale"
        assert [key for _, key in found(kb, text)] == [*names[:3], names[3], "İzmir", "Kırıkkale"]
        assert [len(kb.candidates(name)) for name in ("izmir", "ısparta", "ışıl yücesoy")] == [1, 1, 1]
        assert len(kb.candidates("isparta!")) == 0
    with built(tmp_path, *names, language="en", name="en") as kb:
        assert [key for _, key in found(kb, "Izmir IZMIR İZMİR Isparta ISPARTA")] == ["İzmir"] * 3 + [
            "Isparta"
        ] * 2


def test_where_words_are_in_capitals_or_in_small_letters_these_tell_nothing(tmp_path):
    with built(tmp_path, "Diyarbakır", "Nice", "Apple", language="en") as kb:
        texts = [
            "DİYARBAKIR diyarbakır NICE nice",
            "the AIDS drug is nice",
            "NASA ate an apple",
            "a Nice apple",
            "nice",
        ]
        assert [[text for text, _ in found(kb, each)] for each in texts] == [
            ["DİYARBAKIR", "diyarbakır", "NICE", "nice"], [], [], ["Nice"], ["nice"],
        ]  # fmt: skip


def test_a_stop_at_the_end_of_a_sentence_belongs_to_no_mention(tmp_path):
    with built(tmp_path, "Vitamin C", "Plan B.", "Wall St.", "the U.S.") as kb:
        texts = [
            "Take Vitamin C. Then",
            "He has a Plan B. And",
            "On Wall St. it",
            "In the U.S. Then",
            "In the US.",
        ]
        assert [text for each in texts for text, _ in found(kb, each)] == [
            "Vitamin C", "Plan B.", "Wall St.", "the U.S.", "the US",
        ]  # fmt: skip


def test_a_word_is_no_abbreviation(tmp_path):
    with built(tmp_path, "All of US", "Made in the U.S.", language="en") as kb:
        assert found(kb, "It is for all of us, and made in the us.") == []
        assert [text for text, _ in found(kb, "All of U.S. steel, made in the US")] == [
            "All of U.S.",
            "made in the US",
        ]
    with built(tmp_path, "All of Us", language="en", name="words") as kb:
        assert found(kb, "All of U.S. steel") == []


@pytest.mark.parametrize(
    ("language", "names", "text"),
    [
        ("ro", ("Iași", "Ţăndărei"), "Iaşi, Iași, Țăndărei"),
        ("tr", ("Işıl Yücesoy", "Beşiktaş"), "IŞIL YÜCESOY, Işil Yucesoy, Beșiktaș"),
        ("fa", ("تهرانی", "كابل"), "تهراني، تهرانی، کابل"),
        ("de", ("Müller & Söhne", "Dr. Oetker"), "Müller und Söhne, Mueller & Söhne, Dr Oetker"),
        ("fr", ("Charles et Ray", "Élysée"), "Charles & Ray, ÉLYSEE, ELYSEE"),
    ],
)
def test_letters_and_words_are_those_of_the_language(tmp_path, language, names, text):
    with built(tmp_path, *names, language=language) as kb:
        keys = [key for _, key in found(kb, text)]
        assert keys in ([names[0]] * 2 + [names[1]], [names[0]] + [names[1]] * 2)


def test_a_text_in_capitals_has_names_and_initials_that_are_no_word(tmp_path):
    names = ("N.A.S.A.", "B.B.C.", "A.N.N.", "C.A.R.E.", "Jacques Chirac", "Łódź", "U.S.S. Nimitz")
    with built(tmp_path, *names, language="en") as kb:
        assert [text for text, _ in found(kb, "NASA")] == ["NASA"]
        text = "NASA AND BBC MET PRESIDENT JACQUES CHIRAC IN LODZ. THIS IS WHAT ANN SAID ON USS NIMITZ"
        assert [text for text, _ in found(kb, text)] == [
            "NASA",
            "BBC",
            "JACQUES CHIRAC",
            "LODZ",
            "USS NIMITZ",
        ]
        assert found(kb, "nasa takes care of the bbc") == found(kb, "Mr Nasa, take Care of Bbc") == []
        mentions = AliasGenerator(kb).mentions("NASA TAKES CARE")
        assert [mention.candidates.link_probability for mention in mentions] == [0.5, 0.5]


@pytest.mark.parametrize("make", [AliasGenerator, LemmaGenerator, SegmentGenerator])
def test_initials_without_their_stops_are_in_capitals(tmp_path, make):
    with built(tmp_path, "A.D.A.", "A.N.N.", "O.N.N.", "Ónn", "Dr.", "J.B.", language="en") as kb:
        generator = make(kb)
        if make is SegmentGenerator:
            generator.segments = lambda text: [each.span() for each in re.finditer(r"J\. B\.|\w+", text)]

        def texts(text: str) -> list[str]:
            return [mention.text for mention in generator.mentions(text) if mention.candidates]

        assert texts("Yesterday ADA met the ANN board, and J. B. came, JB too") == [
            "ADA",
            "ANN",
            "J. B.",
            "JB",
        ]
        assert texts("Yesterday Ada met ann and Jb, the ada.") == []
        assert texts("Ada, i cannot read who wrote jb, nor why it is on the table") == []
        assert texts("ada met ann on monday") == []
        assert texts("THIS IS WHAT ANN SAID TO ADA") == []
        [mention] = [each for each in generator.mentions("He met Onn there") if each.candidates]
        assert [kb.key(number) for number in mention.candidates.ids] == ["Ónn"]
        assert [kb.key(number) for number in kb.candidates("ada").ids] == ["A.D.A."]


def test_builds_of_an_older_format_are_read_and_grow_as_before(tmp_path):
    with built(tmp_path, "Antonín Dvořák", "St. Louis", "Sant’Agata–Bianco", "เชียงใหม่", "I.B.M.") as kb:
        publish_in_older_format(kb.store.folder, tmp_path, "old", number=3)
    text = "เชียงใหม่ St. Louis, St Louis and Sant'Agata–Bianco, Sant’Agata-Bianco: I.B.M., IBM; Antonin Dvorak"
    expected = ["เชียงใหม่", "St. Louis", "Sant'Agata–Bianco", "I.B.M."]
    with kgkit.open_kb("old", home=tmp_path) as old:
        assert (old.manifest.format, old.store.folding.version) == (3, 1)
        surfaces = ["antonín dvořák", "i.b.m.", "sant'agata–bianco", "st. louis", "เชียงใหม่"]
        assert list(old.surfaces()) == surfaces and old.manifest.aliases == 5
        assert [len(old.candidates(name)) for name in ("st. louis", "st louis", "IBM")] == [1, 0, 0]
        assert [text for text, _ in found(old, text)] == expected
        assert found(old, "ไปเชียงใหม่") == []
        assert verify(old.store.folder) == []

    more = [{"key": name, "label": name} for name in ("Coca-Cola", "U.S.", "Mt. Etna")]
    kgkit.add_to_kb("old", [*more, {"alias": "ST. LOUIS", "key": "U.S."}], home=tmp_path)
    changes = [{"key": "Mt. Etna", "aliases": ["Mongibello–Etna"], "remove_aliases": ["Mt. Etna"]}]
    kgkit.edit_kb("old", changes, home=tmp_path)
    with kgkit.open_kb("old", home=tmp_path) as old:
        assert old.store.folding.version == 1
        assert [text for text, _ in found(old, text)] == expected
        text = "U.S. US, U.S.A. Coca-Cola Coca Cola Coca–Cola; Mt. Etna, Mongibello–Etna"
        assert [text for text, _ in found(old, text)] == ["U.S.", "U.S.", "Coca-Cola", "Mongibello–Etna"]
        assert sorted(map(old.key, old.candidates("St. Louis").ids)) == ["St. Louis", "U.S."]
        assert verify(old.store.folder) == []


def test_an_edit_brings_and_takes_writings(tmp_path):
    built(tmp_path, "Dvořák", "Łódź").close()
    kgkit.edit_kb(
        "names", [{"key": "Dvořák", "aliases": ["S.P.Q.R."], "remove_aliases": ["Dvořák"]}], home=tmp_path
    )
    with kgkit.open_kb("names", home=tmp_path) as kb:
        assert found(kb, "Dvorak, Lodz, SPQR") == [("Lodz", "Łódź"), ("SPQR", "Dvořák")]
        assert verify(kb.store.folder) == []


NAMES = (
    "U.S.A.", "U.S.", "St. Louis", "John F. Kennedy", "Marvel Inc.", "Coca-Cola", "O'Neill", "Łódź",
    "Gerd Müller", "محمد علي", "ירושלים", "กรุงเทพ", "ភ្នំពេញ", "東京", "ガンダム", "İzmir", "IBM", "👩", "🇩🇪",
)  # fmt: skip
WRITINGS = [
    str.upper,
    str.lower,
    without_accents,
    lambda text: text.replace(".", ""),
    lambda text: text.replace("-", "–"),
    lambda text: text.replace("-", " "),
    lambda text: text.replace("'", "’"),
    lambda text: text.replace("ü", "ue"),
    lambda text: text.replace(" ", "\u2060 "),
    lambda text: "\u00ad".join(text),
    lambda text: f"\u200b{text}\u200e",
    lambda text: re.sub(r"(?<=[\u0620-\u064a])", "\u064e", text),
    lambda text: "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text),
]
PIECES = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(WRITINGS), st.sampled_from(WRITINGS)).map(
        lambda three: three[2](three[1](three[0]))
    ),
    st.sampled_from(
        [" ", " ", ". ", ", ", "\n", "-", "", "\u200d", "🇫🇷", "x", "ก", "่", "\u0301", "'s", "A."]
    ),
)


@pytest.fixture(scope="module", params=["starts", "tries", "tr", "lemma"])
def generator(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    with built(folder, *NAMES, language="tr" if request.param == "tr" else "en") as kb:
        if request.param == "lemma":
            yield LemmaGenerator(kb)
        elif request.param == "tries":
            with_tries(kb.store.folder, folder, "tries", size=4)
            with kgkit.open_kb("tries", home=folder) as tries:
                yield AliasGenerator(tries, AliasConfig(matches="all"))
        else:
            yield AliasGenerator(kb, AliasConfig(matches="all", all_surfaces=True))


@settings(deadline=None)
@given(pieces=st.lists(PIECES, max_size=12))
def test_every_mention_is_a_span_of_whole_tokens_that_folds_to_a_surface_or_a_writing_of_one(
    generator, pieces
):
    text = "".join(pieces)
    store = generator.kb.store
    folding = store.folding
    bounds = [*folding.spans(folding.comparable(text))]
    starts, ends = {start for start, _ in bounds}, {end for _, end in bounds}
    for mention in generator.mentions(text):
        assert text[mention.start : mention.end] == mention.text
        end = mention.end - (mention.end not in ends and mention.text.endswith("."))
        assert mention.start in starts and end in ends
        spaced = re.sub(r"(?<=\w)-(?=\w)", " ", folding.fold(mention.text))
        joined = spaced.replace(" ", "")
        assert any(
            store.alias_row(each) is not None for each in (folding.fold(mention.text), spaced, joined)
        ), mention
