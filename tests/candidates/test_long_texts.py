"""Long texts are read in windows, and their mentions and links are those of the undivided text."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity
from kgkit.candidates import AliasConfig, AliasGenerator, LemmaGenerator, SegmentGenerator, long_texts
from kgkit.candidates.long_texts import is_divisible, mention_windows
from kgkit.drawing import links as html
from kgkit.errors import UsageError
from kgkit.exchange import contract
from kgkit.linking import Linker, LinkSettings, Scorer
from kgkit.linking.coherence import CoherenceConfig, GraphCoherence
from kgkit.types import Document, Mention
from tests.small_kb import SIXTY_FOUR, SIXTY_THREE, build, lexicon_kb, surfaces_kb
from tests.tries import with_tries

# What makes surfaces, what is hard to cut, and the longest surfaces there are.
WORDS = (
    "New", "York", "Times", "New York Times", "Times Square", "a", "a", "a a a", "took off", "hot", "dogs",
    "苹果", "公司", "北京大学", "don't", "'s", "'", "t", "-", "\u0301", "x" * 30, SIXTY_THREE, SIXTY_FOUR,
    "US", "us", "US.", "- " * 70, " " * 140, "a-" * 40, "took-off",
)  # fmt: skip
GAPS = (" ", " ", " ", "", "  ", "\n", "\n\n", " \n \n ", "\u3000", "\x1c")
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=60).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
quiet = settings(deadline=None)


@pytest.fixture(scope="module")
def generators(tmp_path_factory):
    surfaces = surfaces_kb(tmp_path_factory.mktemp("surfaces"))
    home = tmp_path_factory.mktemp("tries")
    with_tries(surfaces.store.folder, home, "tries", size=8)
    tries = kgkit.open_kb("tries", home=home)
    # A chain: every mention of the one surface overlaps the next.
    chain = build(tmp_path_factory.mktemp("chain"), [Entity("A"), Alias("a a", "A"), Alias("a a a", "A")])
    lexicon = lexicon_kb(tmp_path_factory.mktemp("lexicon"))
    found = {"lemma": LemmaGenerator(lexicon)}
    for name, kb in (("alias", surfaces), ("tries", tries), ("chain", chain)):
        for matches in ("longest", "all"):
            found[f"{name}, {matches}"] = AliasGenerator(kb, AliasConfig(matches=matches))
    yield found
    for kb in (surfaces, tries, chain, lexicon):
        kb.close()


def in_windows(generator, text: str, size: int) -> list[Mention]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_texts, "WINDOW", size)
        patch.setattr(long_texts, "_BEFORE", 128)  # more than a headline and a compound reach
        patch.setattr(long_texts, "_REACH", size)
        return [mention for window in mention_windows(generator, text) for mention in window]


KINDS = ["lemma", *(f"{kb}, {how}" for kb in ("alias", "tries", "chain") for how in ("longest", "all"))]


@pytest.mark.parametrize("kind", KINDS)
@quiet
@given(texts, st.integers(1, 40))
def test_mentions_in_windows_are_those_of_the_undivided_text(generators, kind, text, size):
    assert in_windows(generators[kind], text, size) == generators[kind].mentions(text)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"overlaps": "keep"},
    {"overlaps": "score"},
    {"nil": True, "threshold": 0.5, "top_k": 2},
    {"coherence": "graph"},
]


@pytest.mark.parametrize("chosen", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", ["lemma", "alias, longest", "tries, longest", "chain, longest"])
@settings(quiet, max_examples=10)
@given(texts, st.integers(1, 40))
def test_links_of_a_long_document_are_those_of_the_undivided_one(generators, kind, chosen, text, size):
    linker = Linker.open(generators[kind].kb, **chosen)
    if linker.coherence is not None:
        linker.coherence = GraphCoherence(linker.kb, linker.generator, CoherenceConfig(window=3))
    [whole] = linker([text])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_texts, "WINDOW", size)
        assert [*linker([text, "us", text])] == [
            whole,
            *linker([Document("1", "us")]),
            msgspec.structs.replace(whole, id="2"),
        ]


def test_given_mentions_of_a_long_document_are_linked_as_in_a_short_one(generators, monkeypatch):
    text = "us in New York, Turkey; " * 3
    spans = [(42, 48), (0, 2), (6, 14), (16, 22), (3, 5), (24, 26)]  # not in order
    mentions = [Mention(a, b, text[a:b], id=str(n)) for n, (a, b) in enumerate(spans)]
    linker = Linker.open(generators["alias, longest"].kb, nil=True)
    linker.coherence = GraphCoherence(linker.kb, linker.generator, CoherenceConfig(window=2))
    [whole] = linker([Document("d", text, mentions=mentions)])
    monkeypatch.setattr(long_texts, "WINDOW", 8)
    monkeypatch.setattr(long_texts, "_MENTIONS", 3)
    assert [*linker([Document("d", text, mentions=mentions)])] == [whole]
    assert [link.id for link in whole.links] == ["1", "4", "2", "3", "5", "0"]


def test_a_given_mention_outside_of_a_long_document_is_named_by_its_number(generators, monkeypatch):
    monkeypatch.setattr(long_texts, "WINDOW", 8)
    monkeypatch.setattr(long_texts, "_MENTIONS", 1)
    text = "us in New York, Turkey; " * 3
    mentions = [Mention(42, 48, text[42:48]), Mention(6, 14, "York"), Mention(0, 2, "us")]
    with pytest.raises(UsageError, match="mention 2"):
        [*Linker.open(generators["alias, longest"].kb)([Document("d", text, mentions=mentions)])]


def test_a_scorer_that_reads_the_context_gets_a_long_document_whole(generators, monkeypatch):
    lengths: list[int] = []

    class Counting(Scorer):
        name = "counting"

        def __call__(self, documents):
            mentions = documents[0].mentions
            lengths.append(len(mentions))
            return [[mention.candidates.priors for mention in mentions]]

    kb = generators["alias, longest"].kb
    monkeypatch.setattr(long_texts, "WINDOW", 8)
    [linked] = Linker(kb, LinkSettings(), scorer=Counting())(["us in New York, Turkey; " * 9])
    assert lengths == [len(linked.links)] == [27]


def test_a_generator_with_a_way_of_its_own_gets_a_long_text_whole(generators):
    kb = generators["alias, longest"].kb

    class Other(AliasGenerator):
        def mentions(self, text):
            return super().mentions(text)[:1]

    assert is_divisible(AliasGenerator(kb)) and is_divisible(generators["lemma"])
    assert not is_divisible(Other(kb)) and not is_divisible(SegmentGenerator(kb))


def test_links_of_one_surface_share_their_candidates(generators):
    [linked] = Linker.open(generators["alias, longest"].kb)(["us in Turkey, Turkey"])
    *_, first, second = linked.links
    assert first.text == second.text and first.candidates is second.candidates
    [agreed] = Linker.open(generators["alias, longest"].kb, coherence="graph")(["us in Turkey, Turkey"])
    assert agreed.links[-2].candidates is not agreed.links[-1].candidates


def test_a_page_in_pieces_is_the_page_of_the_whole(generators, monkeypatch):
    monkeypatch.setattr(contract, "_CHUNK", 4)
    linked = [*Linker.open(generators["alias, longest"].kb)(["Turkey & us", "", "苹果"])]
    parts = [b"".join(contract.chunks(html.section(one))) for one in linked]
    assert b"".join([html.HEAD.encode(), *parts, html.FOOT.encode()]).decode() == html.render(linked)


MEASURE = """
import resource, sys
import kgkit
from kgkit.linking import Linker

home, name, text = sys.argv[1], sys.argv[2], sys.argv[3] * int(sys.argv[4])
with kgkit.open_kb(name, home=home) as kb:
    linker = Linker.open(kb)
    [_] = linker([sys.argv[3]])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [linked] = linker([text])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(len(linked.links), grown * 1024 / len(text))
"""


@pytest.mark.slow
@pytest.mark.parametrize("line", ["He took off with the hot dogs. ", "犬犬dog. The geese saw men,\n\n"])
def test_a_document_of_two_megabytes_takes_less_than_fifty_bytes_a_character(generators, line):
    kb = generators["lemma"].kb
    home = str(kb.home.path.parents[1])
    times = str((2 << 20) // len(line))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, home, kb.name, line, times],
        capture_output=True, text=True, timeout=300, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    links, grown = map(float, done.stdout.split())
    assert links > 50_000 and grown < 50
