"""What spelling tells: function words, words that a KB has with capitals only, sentences, hyphens."""

import re

import pytest

import kgkit
from kgkit.building import Alias, Entity, Form
from kgkit.candidates import (
    AliasConfig,
    AliasGenerator,
    LemmaConfig,
    LemmaGenerator,
    SegmentGenerator,
    long_texts,
    longest,
)
from kgkit.candidates.hyphens import closed_spelling, joining_hyphens, with_spaces
from kgkit.candidates.long_texts import mention_windows
from kgkit.candidates.spelling import (
    FUNCTION_WORDS,
    begins_sentence,
    function_words,
    ordinary_words,
    position_hides_case,
)
from kgkit.kb import KnowledgeBase
from kgkit.linking import Linker
from kgkit.store.layout import MAX_TOKENS
from kgkit.types import Document, Mention
from tests.small_kb import Given, build
from tests.tries import with_tries

NAMES = {
    "Indiana": ["IN", "Indiana"], "Price": ["Price"], "price": ["price"], "Aspirin": ["Aspirin"],
    "Embassy": ["the Embassy"], "Machine_Learning": ["Machine Learning"], "It": ["IT"],
    "Ice_cream": ["ice cream"], "Health": ["Health Care"], "Coop": ["cooperative"], "CO": ["CO"],
    "Division": ["Division", "division"], "May": ["May"], "X-ray": ["X-ray"], "Ray": ["ray"],
    "Light": ["the Lighthouse", "lighthouse"], "Milk": ["Coconut Milk Shake"],
}  # fmt: skip
COUNTS = {"Price": 3, "price": 9}


class English(Given):
    """A KB whose language is known."""

    language = "en"


def names_kb(folder, builder=English, generator="alias") -> KnowledgeBase:
    aliases = [Alias(text, key, COUNTS.get(key, 1)) for key, texts in NAMES.items() for text in texts]
    records = [*(Entity(key) for key in NAMES), *aliases]
    kgkit.build_kb(builder(records, {}, 1.0, generator), folder, name="names", home=folder)
    return kgkit.open_kb("names", home=folder)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with names_kb(tmp_path_factory.mktemp("names")) as opened:
        yield opened


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    keys = {
        "ice_cream": "n",
        "takeoff": "n",
        "take_off": "v",
        "co": "n",
        "operative": "a",
        "care": "n",
        "cream": "n",
    }
    lemmas = {"ice_cream": "ice cream", "take_off": "take off", "co": "CO"}
    counts = {"Price.n": ("Price", 1), "price.n": ("price", 9)}
    records = [
        *(Entity(key, pos=pos) for key, pos in keys.items()), *(Entity(key, pos="n") for key in counts),
        *(Alias(lemmas.get(key, key), key, 1) for key in keys),
        *(Alias(text, key, count) for key, (text, count) in counts.items()),
        Form("took", "take", "v"), Entity("take", pos="v"), Alias("take", "take", 1),
    ]  # fmt: skip
    with build(tmp_path_factory.mktemp("lexicon"), records, generator="lemma", smoothing=1.0) as opened:
        yield opened


def found(generator, text: str) -> list[str]:
    return [mention.text for mention in generator.mentions(text)]


def best(generator, text: str, of: str) -> str:
    [mention] = [mention for mention in generator.mentions(text) if mention.text == of]
    return generator.kb.key(mention.candidates.ids[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He lives in IN, in Indiana. In IN.", ["IN", "Indiana", "IN"]),
        ("He took aspirin, not Aspirin.", ["Aspirin"]),
        ("She does machine learning at the embassy.", ["machine learning"]),
        ("The embassy is not the Embassy", ["the Embassy"]),
        ("A division of the Division", ["division", "Division"]),
        ("In the lighthouse. The lighthouse", ["the lighthouse", "The lighthouse"]),  # lighthouse is one
        ("It may be May in IT", ["May", "IT"]),
        ("aspirin in indiana", ["aspirin", "indiana"]),  # a query: no capital tells anything
        ("ASPIRIN IN INDIANA, US", ["ASPIRIN", "INDIANA"]),
        ("The price of it. ASPIRIN IN INDIANA BY IT!", ["price", "ASPIRIN", "INDIANA", "IT"]),
    ],
)
def test_words_of_a_language_are_no_names(kb, text, expected):
    assert found(AliasGenerator(kb), text) == expected


def test_one_option_brings_all_surfaces_back(kb):
    text = "In May he took aspirin in the embassy"
    assert found(AliasGenerator(kb), text) == ["May"]
    every = AliasGenerator(kb, AliasConfig(all_surfaces=True))
    assert found(every, text) == ["In", "May", "aspirin", "in", "the embassy"]
    assert [link.text for link in next(Linker.open(kb)([text])).links] == ["May"]
    assert len(next(Linker.open(kb, mentions="all")([text])).links) == 5


def test_without_a_known_language_spelling_decides_alone(tmp_path):
    with names_kb(tmp_path, Given) as kb:
        assert found(AliasGenerator(kb), "He lives in IN. In May") == ["IN", "In", "May"]
    assert function_words("en-GB") == FUNCTION_WORDS
    assert function_words("") == function_words("zh") == frozenset()


def test_the_words_of_english_are_no_names():
    words = ordinary_words("en-GB")
    assert {"cork", "nice", "oaks", "reading", "may", "monday", "the"} <= words
    assert words.isdisjoint(["london", "clinton", "paris", "Nice", ""]) and ordinary_words("") == words
    assert not ordinary_words("de")


LABELS = ["Aspirin", "DNA", "X-ray", "COVID-19", "iPhone", "lichen", "the Shell", "Machine Learning", "Will"]


def labels_kb(folder, labels=LABELS, smoothing=1.0, language="en"):
    """Return a KB of names that nobody counted."""

    class Spoken(Given):
        pass

    Spoken.language = language
    records = [*(Entity(key) for key in labels), *(Alias(key, key) for key in labels)]
    kgkit.build_kb(Spoken(records, {}, smoothing, "alias"), folder, name="labels", home=folder)
    return kgkit.open_kb("labels", home=folder)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_a_name_with_capitals_needs_one_in_the_text_whether_or_not_it_was_counted(tmp_path, smoothing):
    with labels_kb(tmp_path, smoothing=smoothing) as kb:
        generator = AliasGenerator(kb)
        text = "She took aspirin, an x-ray of her dna and lichen by the shell, "
        text += "machine learning, covid-19, iphone"
        assert found(generator, text) == ["x-ray", "lichen", "machine learning", "covid-19"]
        assert [*generator.omissions] == ["aspirin", "dna", "the shell", "iphone"]
        assert found(generator, text.lower()) == [
            "aspirin", "x-ray", "dna", "lichen", "the shell", "machine learning", "covid-19", "iphone",
        ]  # fmt: skip
        segments = SegmentGenerator(kb, lambda text: [(0, 3), (4, 8), (9, 16)])
        assert found(segments, "She took aspirin") == []
        assert found(segments, "She took Aspirin") == ["Aspirin"]


def test_the_words_of_a_list_in_lower_case_are_found_in_any_spelling(tmp_path):
    with labels_kb(tmp_path, ["oak", "silver birch", "Quercus robur"]) as kb:
        text = "Oak and oak, OAK; Silver birch and quercus robur"
        names = ["Oak", "oak", "OAK", "Silver birch", "quercus robur"]
        mentions = AliasGenerator(kb).mentions(text)
        assert [mention.text for mention in mentions] == names
        assert [mention.candidates[0].prior for mention in mentions] == [1.0] * 5


PLACES = [
    "Nice", "Reading", "May", "March", "Bill", "IBM", "iPhone", "eBay", "Gordon Brown", "Nancy", "van Gogh",
    "Essen", "Hof", "北京", "V", "3M", "U.S.", "Rolls-Royce",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nice is in France, and Reading is not.", {"Nice": 0.5, "Reading": 1.0}),
        ("He said: Bill, look.\nReading on", {"Bill": 1.0, "Reading": 0.5}),
        ("In May 1995 he met Bill.", {"May": 0.5, "Bill": 1.0}),
        ("On 3 March they left", {"March": 0.5}),
        ("IBM sells. V rose. Mr. Bill", {"IBM": 1.0, "V": 0.5, "Bill": 1.0}),
        ("READING BEATS NANCY AND GORDON BROWN", {"READING": 0.5, "NANCY": 0.5, "GORDON BROWN": 1.0}),
        ("He said so. READING BEATS IBM BY FAR!", {"READING": 0.5, "IBM": 0.5}),
        ("lets meet in nice, gordon brown or bill", {"nice": 0.5, "gordon brown": 1.0, "bill": 0.5}),
        ("iPhone sales. Van Gogh. eBay left", {"iPhone": 1.0, "Van Gogh": 1.0, "eBay": 1.0}),
        ("3M bought it. U.S. firms", {"3M": 1.0, "U.S.": 1.0}),
        ("Rolls-Royce left", {"Rolls-Royce": 1.0}),
        ("北京 und so", {"北京": 1.0}),
    ],
)  # fmt: skip
def test_a_word_that_may_be_no_name_scores_less_where_nobody_counted_it(tmp_path, text, expected):
    with labels_kb(tmp_path, PLACES) as kb:
        document = next(Linker(kb)([text]))
        assert {link.text: link.score for link in document.links} == expected


def test_a_capital_tells_nothing_of_a_german_noun(tmp_path):
    with labels_kb(tmp_path, PLACES, language="de") as kb:
        links = next(Linker(kb)(["Nach dem Essen fuhren wir mit Gordon Brown auf den Hof."])).links
        assert {link.text: link.score for link in links} == {"Essen": 0.5, "Gordon Brown": 1.0, "Hof": 0.5}


def test_the_doubt_is_over_all_meanings_and_none_is_left_out(tmp_path):
    records = [Entity("A"), Entity("B"), Alias("Nice", "A"), Alias("Nice", "B"), Alias("Bath", "B", 1)]
    with build(tmp_path, records, smoothing=1.0) as kb:
        generator = AliasGenerator(kb)
        first, second, counted = generator.mentions("Nice of Nice. Bath")
        assert (first.candidates.priors.tolist(), first.candidates.null) == ([0.25, 0.25], 0.5)
        assert (second.candidates.priors.tolist(), second.candidates.null) == ([0.5, 0.5], 0.0)
        assert counted.candidates.priors.tolist() == [1.0]
        given = Document("d", "Nice", mentions=[Mention(0, 4, "Nice")])
        [document] = generator([given])
        assert document.mentions[0].candidates.null == 0.0  # somebody says that it is a name


def test_the_words_of_a_compound_are_several(tmp_path):
    with build(tmp_path, [Entity("X"), *(Alias(one, "X", 1) for one in ("X-Ray", "Xray"))]) as kb:
        assert found(AliasGenerator(kb), "An x-ray is no xray") == ["x-ray"]


def test_a_function_word_with_a_capital_inside_a_sentence_is_a_name_the_kb_writes_so(tmp_path):
    records = [Entity("X"), *(Alias(one, "X", 1) for one in ("Will", "It", "I", "AN"))]
    kgkit.build_kb(English(records, {}, 1.0, "alias"), tmp_path, name="will", home=tmp_path)
    with kgkit.open_kb("will", home=tmp_path) as kb:

        def words(text):
            return [match.span() for match in re.finditer(r"\w+", text)]

        for generator in (AliasGenerator(kb), SegmentGenerator(kb, words)):
            assert found(generator, "She will, says Will") == ["Will"]
            assert found(generator, "He left. Will he?") == []
            assert found(generator, "So said It, not An") == ["It"]
            assert found(generator, "he and I") == []
        assert found(AliasGenerator(kb), "SHE WILL LEAVE") == []


def test_given_mentions_are_never_left_out(kb):
    given = [Mention(8, 15, "aspirin"), Mention(16, 18, "in")]
    [document] = AliasGenerator(kb)([Document("d", "He took aspirin in IN", mentions=given)])
    assert [len(mention.candidates) for mention in document.mentions] == [1, 1]


def test_what_was_left_out_is_known(kb):
    generator = AliasGenerator(kb)
    found(generator, "He took aspirin in the embassy, and aspirin in IN")
    assert [*generator.omissions] == ["aspirin", "the embassy"]
    assert not generator.omissions.full


@pytest.mark.parametrize("matches", ["longest", "all"])
def test_what_a_longer_mention_covers_was_not_left_out(tmp_path, matches):
    aliases = {"Machine", "machine learning", "the Embassy", "the Embassy of Peru"}
    records = [Entity("A"), *(Alias(text, "A", 1) for text in sorted(aliases))]
    kgkit.build_kb(English(records, {}, 0.0, "alias"), tmp_path, name="longer", home=tmp_path)
    with kgkit.open_kb("longer", home=tmp_path) as kb:
        generator = AliasGenerator(kb, AliasConfig(matches=matches))
        assert found(generator, "She does machine learning in the embassy of Peru")
        assert [*generator.omissions] == []
        with generator.omissions.pause():
            found(generator, "A machine stands in Peru")
        assert [*generator.omissions] == []
        found(generator, "A machine and machine learning in Peru")
        found(generator, "A machine and the embassy in Peru")
        assert [*generator.omissions] == ["machine", "the embassy"]


def test_segments_are_left_out_alike(kb):
    def words(text):
        return [
            (start, end) for start, end in ((0, 2), (3, 7), (8, 15), (16, 18), (19, 28)) if end <= len(text)
        ]

    generator = SegmentGenerator(kb, words)
    assert found(generator, "He took aspirin in ice-cream") == ["ice-cream"]
    assert [*generator.omissions] == ["aspirin"]


def test_a_capital_where_a_sentence_begins_is_no_proper_name(kb, lexicon):
    for generator, name, word in (
        (AliasGenerator(kb), "Price", "price"),
        (LemmaGenerator(lexicon), "Price.n", "price.n"),
    ):
        assert best(generator, "It is what Price was high", "Price") in (name, word)
        inside = generator.mentions("So Price said")[0].candidates
        first = generator.mentions("So it is. Price said")[0].candidates
        alike = generator.kb.candidates("price", prefer_case=False)
        assert kb_priors(generator, first) == kb_priors(generator, alike)
        assert kb_priors(generator, inside)[name] > kb_priors(generator, first)[name]
        assert generator.mentions("THE PRICE WAS HIGH")[0].candidates == first


@pytest.mark.slow
def test_a_long_text_is_cut_where_it_can_be_seen_whether_a_sentence_begins(kb, monkeypatch):
    generator = AliasGenerator(kb)
    monkeypatch.setattr(long_texts, "WINDOW", 512)
    for gap in (" " * 300, "- " * 150, " "):
        for word in ("so", "o" * 300, "o" * 300 + "-co"):
            text = f"{word}{gap}Price was; " * 12
            for before in range(0, 512, 7):
                shifted = "x" * before + " " + text
                windows = mention_windows(generator, shifted)
                assert [one for window in windows for one in window] == generator.mentions(shifted)


def kb_priors(generator, candidates) -> dict[str, float]:
    return {generator.kb.key(entity): prior for entity, _, prior in candidates}


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("|Price", True), ("It. |Price", True), ("It.|Price", True), ("It? |Price", True),
        ("of |Price", False),
        ("a line\n|Price", True), ("« |Price", True), ("It.” |Price", True), ("he said, “|Price", True),
        ("Mr. |Price", False), ("J. |Price", False), ("the U.S. |Price", False), ("No, |Price", False),
        ("see: |Price", False), ("- |Price", True), ("high - |Price", False), ("他走了。|Price", True),
        ("In 1990. |Price", True), ("wait... |Price", True), ("high . |Price", True), ("the “|Price", False),
    ],
)  # fmt: skip
def test_sentences_begin_where_a_reader_would_say(text, begins):
    before, _, after = text.partition("|")
    assert begins_sentence(before + after, len(before)) is begins


def test_a_name_in_capitals_is_one_unless_all_around_it_is(kb):
    def hides(text: str, word: str) -> bool:
        start = text.index(word)
        return position_hides_case(text, start, start + len(word))

    assert not hides("He said the US was there", "US")
    assert hides("JAPAN BEATS US IN FINAL", "US")
    assert hides("It was late. JAPAN BEATS US IN FINAL. They left", "US")
    assert not hides("The AFP of NATO and US and others", "US")


@pytest.mark.parametrize("settings", [{}, {"matches": "all"}])
def test_words_joined_by_hyphens_are_found_as_the_kb_writes_them(kb, settings):
    generator = AliasGenerator(kb, AliasConfig(**settings))
    mentions = {
        mention.text: mention
        for mention in generator.mentions("An ice-cream, Health-Care, co-operative X-ray")
    }
    named = {text: kb.key(mention.candidates.ids[0]) for text, mention in mentions.items()}
    if not settings:
        assert named == {
            "ice-cream": "Ice_cream",
            "Health-Care": "Health",
            "co-operative": "Coop",
            "X-ray": "X-ray",
        }
    assert named["co-operative"] == "Coop" and "co" not in named
    assert found(generator, "A coconut‑milk shake") == ["coconut‑milk shake"]  # a hyphen of another kind
    assert found(generator, "Ice - cream") == []


def test_what_a_compound_means_by_itself_is_looked_up_once(kb, monkeypatch):
    generator, asked = AliasGenerator(kb), []
    read = generator._read_compound
    monkeypatch.setattr(generator, "_read_compound", lambda *given: asked.append(given[-1]) or read(*given))
    assert found(generator, "An ice-cream and co-operative ice-cream") == [
        "ice-cream",
        "co-operative",
        "ice-cream",
    ]
    assert asked == ["ice-cream", "co-operative"]


def test_a_lemma_is_found_across_hyphens_and_a_part_is_no_abbreviation(lexicon):
    generator = LemmaGenerator(lexicon)
    assert found(generator, "Two ice-creams, and co-operative care") == [
        "ice-creams",
        "creams",
        "operative",
        "care",
    ]
    [mention] = [one for one in generator.mentions("the take-off") if one.text == "take-off"]
    assert {lexicon.key(entity) for entity in mention.candidates.ids} == {"takeoff", "take_off"}
    assert "took-off" in found(generator, "it took-off")
    every = LemmaGenerator(lexicon, LemmaConfig(all_surfaces=True))
    assert found(every, "co-operative") == ["co", "operative"]


@pytest.mark.parametrize("hyphen", ["\u2010", "\u2011"])
def test_a_hyphen_of_unicode_is_found_as_that_of_keyboards(kb, tmp_path, hyphen):
    text = f"An X{hyphen}ray, no co{hyphen}operative"
    assert found(AliasGenerator(kb), text) == [f"X{hyphen}ray", f"co{hyphen}operative"]
    given = Mention(3, 8, f"X{hyphen}ray")
    assert kb.key(AliasGenerator(kb).candidates_of(given).ids[0]) == "X-ray"
    with_tries(kb.store.folder, tmp_path, "tries", size=8)
    records = [Entity("e-mail", pos="n"), Alias("e-mail", "e-mail", 1)]
    with (
        kgkit.open_kb("tries", home=tmp_path) as tries,
        build(tmp_path / "mail", records, generator="lemma") as mail,
    ):
        assert found(AliasGenerator(tries), text) == [f"X{hyphen}ray", f"co{hyphen}operative"]
        assert found(LemmaGenerator(mail), f"an e{hyphen}mail") == [f"e{hyphen}mail"]


def test_a_chain_of_more_parts_than_a_window_may_see_is_no_word(tmp_path):
    most = MAX_TOKENS // 2
    records = [Entity("A"), *(Alias("a" * size, "A", 1) for size in (most, most + 1))]
    with build(tmp_path, records) as kb:
        texts = ["-".join("a" * most), "-".join("a" * (most + 1))]
        assert [found(AliasGenerator(kb), text) for text in texts] == [texts[:1], []]


def test_the_walk_to_the_beginning_of_a_sentence_is_bounded():
    class Counting(str):
        __slots__ = ("read",)

        def __getitem__(self, place):
            self.read = getattr(self, "read", 0) + 1
            return super().__getitem__(place)

    for before in ("- " * 50_000, "a" * 100_000 + ".", "a" * 100_000 + ". "):
        text = Counting(before + "Price")
        assert begins_sentence(text, len(before))
        assert text.read < 100


def test_given_mentions_are_looked_up_across_hyphens(kb, lexicon):
    for generator, key in ((AliasGenerator(kb), "Ice_cream"), (LemmaGenerator(lexicon), "ice_cream")):
        assert generator.kb.key(generator.candidates_of(Mention(0, 9, "ice-cream")).ids[0]) == key


def test_hyphens_that_join_words_and_those_that_do_not():
    assert joining_hyphens("a-b - c -d e\u2011f -") == [1, 12]
    assert (with_spaces("ice-cream - a-b-c"), closed_spelling("co-operative")) == (
        "ice cream - a b c",
        "cooperative",
    )
    assert closed_spelling("T-V") is closed_spelling("1990-2000") is closed_spelling("a b-cdef") is None


HYPHENED = (
    "Coca-Cola", "Jean-Paul Sartre", "Port-au-Prince", "University of Aix-Marseille", "built-in",
    "take-off", "Andrew Lloyd-Webber", "F-16", "T-shirt", "1998-99", "sister-in-law", "At-Bristol", "Cola",
    "Coca-Cola Zero Sugar", "Baden-Württemberg",
)  # fmt: skip


@pytest.fixture(scope="module")
def hyphened(tmp_path_factory):
    records = [*map(Entity, HYPHENED), *(Alias(name, name) for name in HYPHENED)]
    with build(tmp_path_factory.mktemp("hyphened"), records) as kb:
        yield kb


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Coca Cola and coca\ncola", {"Coca Cola": "Coca-Cola", "coca\ncola": "Coca-Cola"}),
        ("to Jean Paul Sartre's", {"Jean Paul Sartre": "Jean-Paul Sartre"}),
        (
            "in Port au Prince, in Port-au Prince",
            {"Port au Prince": "Port-au-Prince", "Port-au Prince": "Port-au-Prince"},
        ),
        ("University of Aix Marseille", {"University of Aix Marseille": "University of Aix-Marseille"}),
        ("with Andrew Lloyd Webber", {"Andrew Lloyd Webber": "Andrew Lloyd-Webber"}),
        ("two T shirts, an F 16", {"T shirts": "T-shirt", "F 16": "F-16"}),
        ("my sisters in law", {"sisters in law": "sister-in-law"}),
        ("the Coca Cola Zero Sugar", {"Coca Cola Zero Sugar": "Coca-Cola Zero Sugar"}),
        ("Baden Württemberg", {"Baden Württemberg": "Baden-Württemberg"}),
        ("built in 1990, they take off in 1998 99. At Bristol", {}),
        ("I drink Coca. Cola too\n\nCoca\n\nCola", {"Cola": "Cola"}),
    ],
)
def test_a_space_stands_for_a_hyphen_of_the_kb(hyphened, text, found):
    mentions = AliasGenerator(hyphened).mentions(text)
    keys = [hyphened.get(int(mention.candidates.ids[0])).key for mention in mentions]
    assert dict(zip([mention.text for mention in mentions], keys, strict=True)) == found


def test_given_mentions_are_looked_up_with_hyphens_too(hyphened):
    document = Document("1", "Coca Cola", mentions=[Mention(0, 9, "Coca Cola")])
    [document] = AliasGenerator(hyphened)([document])
    assert hyphened.get(int(document.mentions[0].candidates.ids[0])).key == "Coca-Cola"


SITES = (
    "Paris", "Apple", "Amazon", "Amazon.com", "London", "Berlin", "New York", "北京", "Node.js", "AC/DC",
    "Müller",
)  # fmt: skip


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    records = [*map(Entity, SITES), *(Alias(name, name) for name in SITES)]
    with build(tmp_path_factory.mktemp("sites"), records) as kb:
        yield kb


ADDRESSES = [
    ("See https://en.wikipedia.org/wiki/Paris and Paris.", ["Paris"]),
    ("ftp://x.org/New York in New York", ["New York"]),
    ("Amazon.com and amazon.com/Apple, but Apple.com? Amazon", ["Amazon.com", "Amazon"]),
    ("Paris@Berlin.de, john.Paris@x.org, mailto:Apple@x, Berlin", ["Berlin"]),
    ("@Apple #Apple @ Apple", ["Apple", "Apple"]),
    ("/usr/share/Paris/x, ~/Berlin, ./Paris.txt ../London/a", []),
    ("src/Apple/Main.java Paris.pdf Node.js", ["Node.js"]),
    (
        "Paris/London and AC/DC, Berlin/Paris/London",
        ["Paris", "London", "AC/DC", "Berlin", "Paris", "London"],
    ),
    (r"C:\Data\Paris\New York\a.txt and Apple\Berlin London", ["London"]),
    ("doi:10.1000/Paris.1 and 10.1038/Apple", []),
    ("Paris.In London it is.Berlin", ["Paris", "London", "Berlin"]),
    ("北京http://example.com/北京。北京 访问www.Apple.com看北京", ["北京", "北京", "北京"]),
    ("(https://x.org/Paris), www.Amazon.com; Paris", ["Paris"]),
    ("Müller@web.de wrote to Müller: Paris:London, e.g. Paris", ["Müller", "Paris", "London", "Paris"]),
    ('"https://Apple.com/Paris"-Apple, Paris.fr', ["Apple"]),
    ("see /paris, (/apple/) or '/london?x' GET /berlin", []),
    ("$HOME/Paris/London ${APPLE}/Paris %APPLE%\\Paris ~paris/Apple and Paris", ["Paris"]),
    ("localhost:8080/Paris localhost/Apple 127.0.0.1:80/Paris berlin:443/Apple: Paris", ["Paris"]),
    (r"C:\\Paris\\Apple and \\Apple\Paris in London", ["London"]),
    ("Paris@host com.Apple.Paris", []),
    (
        "Paris /London, and/or Paris, 5 km/h $5/Apple 24/7 Berlin: /London 1/2 Paris",
        [
            "Paris",
            "London",
            "Paris",
            "Apple",
            "Berlin",
            "London",
            "Paris",
        ],
    ),
    ("U.S./Paris 3.5/Paris Paris.. Berlin...Paris", ["Paris", "Paris", "Paris", "Berlin", "Paris"]),
]


@pytest.mark.parametrize(("text", "found"), ADDRESSES)
def test_nothing_is_a_mention_within_an_address(sites, text, found):
    for matches in ("longest", "all"):
        mentions = longest(AliasGenerator(sites, AliasConfig(matches=matches)).mentions(text))
        assert [mention.text for mention in mentions] == found


def test_whoever_asks_for_all_surfaces_has_those_of_addresses_too(sites):
    text = "https://en.wikipedia.org/wiki/Paris @Apple"
    mentions = AliasGenerator(sites, AliasConfig(all_surfaces=True)).mentions(text)
    assert [mention.text for mention in mentions] == ["Paris", "Apple"]


def test_other_generators_know_addresses_too(sites, lexicon):
    text = "https://x.org/Paris Paris"
    segments = SegmentGenerator(sites, lambda _: [(14, 19), (20, 25)])
    assert [mention.start for mention in segments.mentions(text)] == [20]
    assert [mention.start for mention in LemmaGenerator(lexicon).mentions("x.org/takeoff/a takeoff")] == [16]
