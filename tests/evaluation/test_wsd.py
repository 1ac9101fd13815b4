"""The files of the unified WSD framework, and its score."""

import bz2
import gzip
import itertools
import lzma
import os
import tracemalloc
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation import Score, read_documents, read_gold, score, write_keys, wsd
from kgkit.evaluation.wsd import read_keys

MINI = """<?xml version="1.0" encoding="UTF-8"?>
<corpus lang="en" source="mini">
<text id="d0" source="by hand">
<sentence id="d0.s0">
<wf lemma="she" pos="PRON">She</wf>
<instance id="d0.s0.t0" lemma="eat" pos="VERB">ate</instance>
<instance id="d0.s0.t1" lemma="hot_dog" pos="NOUN">hot dogs</instance>
<wf lemma="." pos=".">.</wf>
</sentence>
<sentence id="d0.s1">
<instance id="d0.s1.t0" lemma="naïve" pos="ADJ">Naïve</instance>
<wf lemma="𝒟" pos="NOUN">𝒟</wf>
<instance id="d0.s1.t1" lemma="truly" pos="ADV">truly</instance>
</sentence>
</text>
<text id="d1">
<sentence id="d1.s0"><wf lemma="&amp;" pos=".">&amp;</wf></sentence>
</text>
</corpus>
"""

GOLD = """d0.s0.t0 eat%2:34:00::
d0.s0.t1 hot_dog%1:13:01:: frank%1:13:00::
d0.s1.t0 naive%3:00:00::
d0.s1.t1 truly%4:02:00::
"""

SHARED = Path(os.environ.get("KGKIT_SHARED") or Path(__file__).parents[3] / "shared") / "data"
needs_shared = pytest.mark.skipif(
    not (SHARED / "wsd").is_dir(),
    reason="needs the shared data, ../shared or the folder named by KGKIT_SHARED",
)


each_compression = pytest.mark.parametrize(
    ("suffix", "compress"), [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)]
)


@pytest.fixture
def mini(tmp_path):
    def write(content: str | bytes, name: str = "mini.data.xml") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def around(inside: str) -> str:
    """Return a data file of one text."""
    return f'<corpus>\n<text id="d0">\n{inside}\n</text>\n</corpus>'


def test_tokens_are_joined_by_spaces_and_sentences_by_newlines(mini):
    first, second = read_documents(mini(MINI))
    assert (first.id, first.text) == ("d0", "She ate hot dogs .\nNaïve 𝒟 truly")
    assert (second.id, second.text) == ("d1", "&")


def test_sentences_and_tokens_are_code_point_ranges(mini):
    document = next(read_documents(mini(MINI)))
    assert [document.text[a:b] for a, b in document.sentences] == document.text.split("\n")
    expected = ["She", "ate", "hot dogs", ".", "Naïve", "𝒟", "truly"]
    assert [document.text[a:b] for a, b in document.tokens] == expected


def test_an_instance_becomes_a_mention_with_its_offsets_lemma_and_pos(mini):
    first, second = read_documents(mini(MINI))
    rows = [(m.id, m.start, m.end, m.text, m.lemma, m.pos) for m in first.mentions]
    assert rows == [
        ("d0.s0.t0", 4, 7, "ate", "eat", "v"),
        ("d0.s0.t1", 8, 16, "hot dogs", "hot dog", "n"),
        ("d0.s1.t0", 19, 24, "Naïve", "naïve", "a"),
        ("d0.s1.t1", 27, 32, "truly", "truly", "r"),
    ]
    assert second.mentions == []


def test_white_space_around_and_inside_a_token_is_normalised_but_a_no_break_space_is_kept(mini):
    tokens = "<wf>  to </wf><wf>New\n  York</wf><wf> </wf><wf>10\u00a0km</wf>"
    (document,) = read_documents(mini(around(f"<sentence>{tokens}</sentence><sentence/>")))
    assert document.text == "to New York 10\u00a0km"
    assert len(document.tokens) == 3 and len(document.sentences) == 1


def test_corpora_may_be_nested_around_the_texts(mini):
    nested = f"<corpora>{around('')}{around('').replace('d0', 'd1')}</corpora>"
    assert [document.id for document in read_documents(mini(nested))] == ["d0", "d1"]


def test_malformed_xml_is_reported_with_its_file_and_line(mini):
    path = mini(MINI.replace("hot dogs</instance>", "hot dogs</wf>"))
    with pytest.raises(SourceError, match="mismatched tag") as caught:
        list(read_documents(path))
    assert (caught.value.path, caught.value.line) == (path, 7)


def test_a_file_that_stops_in_the_middle_is_an_error_after_its_whole_documents(mini):
    documents = read_documents(mini(MINI[: MINI.index('<text id="d1">') + 20]))
    assert next(documents).id == "d0"
    with pytest.raises(SourceError, match="malformed XML"):
        next(documents)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<sentence><instance id="i" lemma="a" pos="DET">a</instance></sentence>', "found 'DET'"),
        ('<sentence><instance id="i" pos="NOUN">a</instance></sentence>', "without 'lemma'"),
        ('<sentence><instance lemma="a" pos="NOUN">a</instance></sentence>', "without 'id'"),
        ('<sentence><instance id="i" lemma="a" pos="NOUN"> </instance></sentence>', "text of a token"),
        ("<sentence>{0}{0}</sentence>", "second instance 'i'"),
        ("<sentence><wf>a<b>c</b></wf></sentence>", "text of a token"),
        ("<sentence><w>a</w></sentence>", "in <sentence> expected only <wf> and <instance>"),
        ("<sentence>lost<wf>a</wf></sentence>", "in <sentence> expected only"),
        ("<sentence><wf>a</wf>lost</sentence>", "in <sentence> expected only"),
        ("<wf>a</wf>", "in <text> expected only <sentence>"),
        ('</text><text id="d0">', "second text 'd0'"),
        ("</text><text>", "<text> without 'id'"),
    ],
)
def test_what_the_format_does_not_have_is_refused(mini, inside, message):
    inside = inside.format('<instance id="i" lemma="a" pos="NOUN">a</instance>')
    path = mini(around(inside))
    with pytest.raises(SourceError, match=message) as caught:
        list(read_documents(path))
    assert caught.value.path == path


def test_a_file_without_texts_is_refused(mini):
    with pytest.raises(SourceError, match="no <text>"):
        list(read_documents(mini("<html><p>hello</p></html>")))


@pytest.mark.parametrize("encoding", ["no-such-thing", "utf-7", "base64"])
def test_an_encoding_that_cannot_be_read_is_a_source_error(mini, encoding):
    with pytest.raises(SourceError):
        list(read_documents(mini(MINI.replace("UTF-8", encoding))))


def test_a_file_in_latin_1_that_says_so_is_read(mini):
    text = MINI.replace("𝒟", "D").replace("UTF-8", "ISO-8859-1")
    assert next(read_documents(mini(text.encode("latin-1")))).mentions[2].text == "Naïve"


@pytest.mark.parametrize("bomb", ["a" * 400_000, "<corpus><text" + " " * 400_000, "<wf>a</wf>" * 40_000])
def test_a_text_without_an_end_is_not_read_to_the_end_of_the_file(bomb, tmp_path, monkeypatch):
    monkeypatch.setattr(wsd, "MAX_TEXT", 100_000)
    path = tmp_path / "bomb.data.xml.gz"
    path.write_bytes(gzip.compress(f"<corpus><text>{bomb}".encode()))
    with pytest.raises(SourceError, match="more than 0 MiB without the end of a <text>"):
        list(read_documents(path))
    texts = "".join(f'<text id="d{number}">{" " * 50_000}</text>' for number in range(9))
    path.write_bytes(gzip.compress(f"<corpus>{texts}</corpus>".encode()))
    assert len(list(read_documents(path))) == 9


def test_an_entity_bomb_does_not_go_off(mini):
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    head = f'<!DOCTYPE corpus [<!ENTITY e0 "{"ha" * 50}">{entities}]>'
    path = mini(head + around("<sentence><wf>&e11;</wf></sentence>"))
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="malformed XML"):
            list(read_documents(path))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_an_external_entity_is_not_fetched(mini):
    secret = mini("<sentence><wf>secret</wf></sentence>", "secret.xml")
    head = f'<!DOCTYPE corpus [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    with pytest.raises(SourceError, match="malformed XML"):
        list(read_documents(mini(head + around("&e;"))))


def peak_of_reading(path: Path, count: int) -> int:
    """Return the most bytes held while the first *count* documents go by."""
    documents = read_documents(path)
    next(documents)  # what a decompressor needs, it has by now
    tracemalloc.start()
    try:
        assert sum(1 for _ in itertools.islice(documents, count - 1)) == count - 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_documents(mini):
    sentences = MINI[MINI.index("<sentence") : MINI.index("</text>")]
    texts = "".join(f'<text id="d{n}">{sentences}</text>' for n in range(2000))
    path = mini(gzip.compress(f"<corpus>{texts}</corpus>".encode()), "many.xml.gz")
    assert peak_of_reading(path, 2000) < peak_of_reading(path, 500) + 1_000_000  # kept, they would be 10 MB


characters = st.characters(exclude_categories=["Cc", "Cn", "Cs"])  # of the rest XML takes every one
words = st.text(characters, min_size=1, max_size=8).filter(lambda word: word.strip(" "))
sentences_of_words = st.lists(st.lists(st.tuples(words, st.booleans()), max_size=4), max_size=4)
corpora = st.lists(sentences_of_words, min_size=1, max_size=3)


@given(corpora)
def test_every_offset_gives_back_the_token_of_the_file(tmp_path_factory, corpus):
    root = ElementTree.Element("corpus")
    for d, sentences in enumerate(corpus):
        text = ElementTree.SubElement(root, "text", id=f"d{d}")
        for s, tokens in enumerate(sentences):
            sentence = ElementTree.SubElement(text, "sentence")
            for t, (word, annotated) in enumerate(tokens):
                attributes = {"id": f"d{d}.s{s}.t{t}", "lemma": "x_y", "pos": "NOUN"} if annotated else {}
                ElementTree.SubElement(sentence, "instance" if annotated else "wf", attributes).text = word
    path = tmp_path_factory.getbasetemp() / "any.data.xml"
    ElementTree.ElementTree(root).write(path, encoding="utf-8")

    def plain(word: str) -> str:
        return " ".join(part for part in word.split(" ") if part)

    for document, sentences in zip(read_documents(path), corpus, strict=True):
        every = [(plain(word), annotated) for tokens in sentences for word, annotated in tokens]
        lines = [" ".join(plain(word) for word, _ in tokens) for tokens in sentences if tokens]
        assert document.text == "\n".join(lines)
        assert [document.text[a:b] for a, b in document.sentences] == lines
        assert [document.text[a:b] for a, b in document.tokens] == [word for word, _ in every]
        assert [m.text for m in document.mentions] == [word for word, annotated in every if annotated]
        assert all(m.text == document.text[m.start : m.end] for m in document.mentions)


def test_a_gold_file_gives_the_keys_of_each_instance_in_order(mini):
    gold = read_gold(mini(GOLD + "\n", "gold.txt"))
    assert list(gold) == ["d0.s0.t0", "d0.s0.t1", "d0.s1.t0", "d0.s1.t1"]
    assert gold["d0.s0.t1"] == ("hot_dog%1:13:01::", "frank%1:13:00::")


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_gold_file_without_an_instance_is_refused(mini, content):
    path = mini(content, "gold.txt")
    with pytest.raises(SourceError) as caught:
        read_gold(path)
    assert caught.value.path == path and read_keys(path) == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("d9.s9.t9\n", "found 1 field"),
        ("d0.s0.t0 eat%2:34:01::\n", "twice"),
        (b"d9 caf\xe9%1:06:00::\n", "not UTF-8"),
    ],
)
def test_a_bad_line_is_reported_with_its_number(mini, line, message):
    path = mini(GOLD.encode() + (line if isinstance(line, bytes) else line.encode()), "gold.txt")
    with pytest.raises(SourceError, match=message) as caught:
        read_gold(path)
    assert (caught.value.path, caught.value.line) == (path, 5)


keys = st.text("ab%:1()_", min_size=1, max_size=6)
key_maps = st.dictionaries(st.text("i.0é", min_size=1, max_size=4), st.lists(keys, max_size=3))


@given(key_maps)
def test_answers_survive_writing_and_reading(tmp_path_factory, answers):
    path = tmp_path_factory.getbasetemp() / "any.key.txt.gz"
    write_keys(path, answers)
    once = read_keys(path)
    assert list(once) == [instance for instance, given_keys in answers.items() if given_keys]
    write_keys(path, once)
    assert read_keys(path) == once


def test_keys_are_written_without_the_marker_and_unanswered_instances_not_at_all(tmp_path):
    path = tmp_path / "out.key.txt"
    write_keys(path, {"i": ["lone%5:00:00:single(a):00"], "j": [], "k": {"b%1:00:00::", "a%1:00:00::"}})
    assert path.read_text() == "i lone%5:00:00:single:00\nk a%1:00:00:: b%1:00:00::\n"


@pytest.mark.parametrize(
    "answers", [{"i j": ["a"]}, {"": ["a"]}, {"i": ["a b"]}, {"i": ["a\n"]}, {"i": [""]}]
)
def test_what_would_break_a_line_is_refused_and_the_old_file_stays(tmp_path, answers):
    path = tmp_path / "out.key.txt"
    path.write_text("old")
    with pytest.raises(UsageError, match="key file has no place"):
        write_keys(path, {"h": ["a"], **answers})
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_string_is_one_key_and_not_its_letters():
    assert score({"i": "ab"}, {"i": "ab"}).overall.right == 1
    assert score({"i": "ab"}, {"i": "ba"}).overall.right == 0


def test_the_marker_of_an_adjective_matters_on_neither_side():
    with_marker, without = ["lone%5:00:00:single(a):00"], ["lone%5:00:00:single:00"]
    assert score({"i": with_marker}, {"i": without}).overall.right == 1
    assert score({"i": without}, {"i": with_marker}).overall.right == 1


def test_scores_are_told_apart_by_pos():
    gold, pos = {"i": ["a"], "j": ["b"], "k": ["c"]}, {"i": "r", "j": "n", "k": "r", "l": "v"}
    scores = score(gold, {"i": ["a"], "k": ["x"]}, pos=pos)
    assert list(scores.by_pos.items()) == [("n", Score(Fraction(0), 0, 1)), ("r", Score(Fraction(1), 2, 2))]


def test_an_answer_without_gold_is_skipped_with_a_warning(caplog):
    scores = score({"i": ["a"]}, {"z": ["a"], "i": ["a"]})
    assert scores.skipped == ("z",) and scores.overall == Score(Fraction(1), 1, 1)
    assert "1 answers have no gold" in caplog.text and "'z'" in caplog.text


def test_gold_that_the_data_lack_is_refused():
    with pytest.raises(SourceError, match=r"1 of 2 gold instances are not in the data, the first is 'j'"):
        score({"i": ["a"], "j": ["b"]}, {}, pos={"i": "n"})


def framework_score(gold: dict[str, list[str]], answers: dict[str, list[str]]) -> tuple[float, float, float]:
    """Say in floats, instance by instance, what the framework's scorer computes."""
    ok = notok = 0.0
    for instance, given_keys in answers.items():
        if instance in gold and given_keys:
            different = set(given_keys)
            for key in different:
                if key in gold[instance]:
                    ok += 1 / len(different)
                else:
                    notok += 1 / len(different)
    precision = ok / (ok + notok) if ok + notok else 0.0
    recall = ok / len(gold) if gold else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


answer_maps = st.dictionaries(st.sampled_from("ijklmn"), st.lists(st.sampled_from("abcd"), max_size=4))


@given(answer_maps, answer_maps)
def test_the_score_agrees_with_the_slow_definition(gold, answers):
    found = score(gold, answers).overall
    assert (found.precision, found.recall, found.f1) == pytest.approx(framework_score(gold, answers))


@given(answer_maps, answer_maps, answer_maps)
def test_the_parts_add_up_to_the_whole(gold, answers, seed):
    pos = {instance: "nvar"[len(seed.get(instance, [])) % 4] for instance in gold}
    scores = score(gold, answers, pos=pos)
    parts = [(part.right, part.answered, part.total) for part in scores.by_pos.values()]
    if gold:
        assert scores.overall == Score(*map(sum, zip(*parts, strict=True)))


@needs_shared
@pytest.mark.parametrize(
    ("name", "sentences", "count"),
    [
        ("senseval2", 242, 2274),
        ("senseval3", 352, 1843),
        ("semeval2007", 128, 455),
        ("semeval2013", 306, 1644),
        ("semeval2015", 138, 1017),
        ("ALLamended", 1038, 4917),
    ],
)
def test_the_shared_test_sets_read_as_their_table_says(name, sentences, count):
    data = next((SHARED / "wsd").glob(f"{name}.data.xml*"))
    gold = read_gold(next((SHARED / "wsd").glob(f"{name}.gold.key.txt*")))
    documents = list(read_documents(data))
    mentions = {m.id: (document, m) for document in documents for m in document.mentions}
    assert (sum(len(document.sentences) for document in documents), len(mentions)) == (sentences, count)
    assert mentions.keys() == gold.keys()
    with data.open("rb") if data.suffix == ".xml" else lzma.open(data) as stream:
        for element in ElementTree.parse(stream).iter("instance"):
            document, mention = mentions[element.get("id", "")]
            assert document.text[mention.start : mention.end] == mention.text == element.text
    perfect = score(gold, gold, pos={name: m.pos for name, (_, m) in mentions.items()}).overall
    assert (perfect, perfect.f1) == (Score(Fraction(count), count, count), 1.0)


@pytest.mark.slow
@needs_shared
def test_semcor_streams_in_bounded_memory():
    path = SHARED / "semcor" / "semcor.data.xml.xz"
    first = [document.id for document in itertools.islice(read_documents(path), 3)]
    assert first == ["d000", "d001", "d002"]
    assert peak_of_reading(path, 20) < 5_000_000  # half of it is one document as elements; 20 kept are 12 MB
