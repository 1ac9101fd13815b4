"""Generators as documents meet them: streams, given mentions, threads, pickles, memory."""

import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.candidates import (
    AliasConfig,
    AliasGenerator,
    LemmaConfig,
    LemmaGenerator,
    SegmentGenerator,
    generator_for,
)
from kgkit.candidates.memory import Budget, Cutter
from kgkit.errors import UnknownName, UsageError
from kgkit.linking import Linker
from kgkit.text import folding
from kgkit.trees import TreeBuilder
from kgkit.types import NO_CANDIDATES, Document, Mention
from tests.small_kb import Given, build, lexicon_kb, surfaces_kb

FOLDING = folding()
CUTTER = Cutter(Budget(100), FOLDING)
TEXT = "He took off from New York to 北京; the geese flew to Turkey."


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory):
    with surfaces_kb(tmp_path_factory.mktemp("surfaces")) as opened:
        yield opened


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    with lexicon_kb(tmp_path_factory.mktemp("lexicon")) as opened:
        yield opened


@pytest.fixture(params=["alias", "lemma"])
def generator(request, surfaces, lexicon):
    return AliasGenerator(surfaces) if request.param == "alias" else LemmaGenerator(lexicon)


def test_documents_without_mentions_get_all_that_are_found(generator):
    document = Document("d", TEXT, sentences=[(0, len(TEXT))], tokens=[(0, 2)])
    (found,) = generator([document])
    assert found.mentions == generator.mentions(TEXT) != []
    assert (found.id, found.text, found.sentences, found.tokens) == ("d", TEXT, [(0, len(TEXT))], [(0, 2)])
    assert document.mentions is None


def test_given_mentions_keep_all_but_their_candidates(generator):
    mentions = [
        Mention(51, 57, "Turkey", pos="", id="t1"),
        Mention(0, 2, "He", lemma="he", pos="n", id="t0"),
        Mention(3, 4, "t", candidates=NO_CANDIDATES),
    ]
    (found,) = generator([Document("d", TEXT, mentions=mentions)])
    assert [(m.start, m.end, m.text, m.lemma, m.pos, m.id) for m in found.mentions] == [
        (m.start, m.end, m.text, m.lemma, m.pos, m.id) for m in mentions
    ]
    assert [len(m.candidates) for m in found.mentions] == [2, 0, 0]
    assert mentions[0].candidates is None


APPLE = (
    Entity("nyc", "New York City"), Entity("a8", "A-8"), Entity("who", "The Who"), Entity("w", "W"),
    Alias("Big Apple", "nyc"), Alias("take off", "a8"), Alias("The Who", "who"), Alias("who", "w"),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["alias", "lemma", "segment"])
@pytest.mark.parametrize(("language", "is_cut"), [("", True), ("en-GB", True), ("de", False)])
def test_an_article_that_no_surface_has_is_left_out_of_given_mentions(tmp_path, kind, language, is_cut):
    kgkit.build_kb(Given(APPLE, {}, 0.0, "alias"), tmp_path, name="a", home=tmp_path, language=language)
    text = "The Big\nApple, the who, an take-off, Theodore, a, the  Big Pear, a big apple"
    given = []
    for part in text.split(", "):
        start = given[-1].end + 2 if given else 0
        given.append(Mention(start, start + len(part), part))
    with kgkit.open_kb("a", tmp_path) as kb:
        generator = {"alias": AliasGenerator, "lemma": LemmaGenerator, "segment": SegmentGenerator}[kind](kb)
        (document,) = generator([Document("d", text, mentions=given)])
        keys = [[each.entity.key for each in kb.decode(m.candidates)] for m in document.mentions]
    article = [["nyc"], ["who"], ["a8"], [], [], [], ["nyc"]]
    assert keys == (article if is_cut else [[], ["who"], [], [], [], [], []])
    assert [(m.start, m.end, m.text) for m in document.mentions] == [(m.start, m.end, m.text) for m in given]


def test_no_mentions_given_are_none_to_find(generator):
    (found,) = generator([Document("d", TEXT, mentions=[])])
    assert found.mentions == []


@pytest.mark.parametrize(
    "mention",
    [Mention(9, 3, ""), Mention(3, 3, ""), Mention(-4, 3, "Tur"), Mention(0, 99, TEXT), Mention(0, 2, "he")],
)
def test_given_mentions_that_are_no_spans_of_their_text_are_refused(mention, generator):
    sound = Mention(3, 7, "took")
    with pytest.raises(UsageError, match=f"document 'd': mention 2 spans {mention.start} to {mention.end}"):
        [*generator([Document("d", TEXT, mentions=[sound, mention])])]
    with pytest.raises(UsageError, match="mention 1 spans"):
        [*Linker(generator.kb)([Document("d", TEXT, mentions=[mention])])]
    with pytest.raises(UsageError, match="mention 1 spans"):
        [*TreeBuilder([generator])([[Document("d", TEXT, mentions=[mention])]])]


def test_a_stream_is_not_read_ahead(generator):
    read = []

    def documents() -> Iterator[Document]:
        for number in range(3):
            read.append(number)
            yield Document(str(number), TEXT)

    stream = generator(documents())
    assert read == []
    assert next(stream).id == "0"
    assert read == [0]
    assert [document.id for document in stream] == ["1", "2"]


def test_what_is_remembered_changes_nothing(generator):
    first = generator.mentions(TEXT)
    assert generator.mentions(TEXT) == first
    assert generator.mentions(TEXT[:25]) == [mention for mention in first if mention.end <= 25]


@settings(deadline=None)
@given(text=st.text() | st.text("ab苹é\u0301'ts- \n\t\u00a0\x1c.").map(lambda text: f"a {text}"))
def test_a_text_is_cut_in_chunks_as_it_is_cut_whole(text):
    assert CUTTER.cut(text)[0] == FOLDING.split(text)


def test_a_full_memory_is_emptied_and_changes_nothing(generator):
    expected = generator.mentions(TEXT)
    forgetful = type(generator)(generator.kb, replace(generator.config, cache_mb=0))
    for _ in range(3):
        assert forgetful.mentions(TEXT) == expected
        assert len(forgetful._cased.entries) <= 1
        assert len(forgetful._cased.spans) <= 1
        assert len(forgetful._cutter) <= 1


def test_a_generator_can_be_pickled(surfaces, lexicon):
    for generator in (
        AliasGenerator(surfaces, AliasConfig(matches="all", max_candidates=1)),
        LemmaGenerator(lexicon, LemmaConfig(null=0.1)),
    ):
        found = generator.mentions(TEXT)
        again = pickle.loads(pickle.dumps(generator))
        assert again.config == generator.config
        assert again.mentions(TEXT) == found
        assert pickle.loads(pickle.dumps(found)) == found


def test_many_threads_share_a_generator(generator):
    texts = [TEXT, TEXT[::-1], TEXT.upper(), TEXT[10:]]
    expected = [generator.mentions(text) for text in texts]
    fresh, found = type(generator)(generator.kb, replace(generator.config, cache_mb=0.004)), []
    threads = [
        threading.Thread(
            target=lambda: found.extend([fresh.mentions(text) for text in texts] for _ in range(20))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 160


def test_a_kb_says_which_generator_suits_it(surfaces, lexicon):
    assert type(generator_for(surfaces)) is AliasGenerator
    assert type(generator_for(lexicon)) is LemmaGenerator


def test_a_generator_that_is_not_there_is_named(tmp_path):
    records = [Entity("e"), Alias("e", "e"), Triple("e", "is", "e")]
    message = "no candidate generator named 'magic'; there are: alias, lemma"
    with build(tmp_path, records, generator="magic") as kb, pytest.raises(UnknownName, match=message):
        generator_for(kb)


def test_a_document_with_mentions_can_be_written_and_read(generator):
    document = Document(
        "d", "A dog.", sentences=[(0, 6)], tokens=[(0, 1), (2, 5)], mentions=[Mention(2, 5, "dog")]
    )
    assert msgspec.json.decode(msgspec.json.encode(document), type=Document) == document


@pytest.mark.parametrize("word", ["dog ", "hot dog\n", "苹果", "unknown ", "word", "\u0301", "' "])
def test_a_long_text_takes_linear_time(generator, word):
    text = word * (200_000 // len(word))
    for mention in generator.mentions(text):
        assert text[mention.start : mention.end] == mention.text
