"""Link probability: surfaces counted in texts, kept with the knowledge base, NULL's share of the prior."""

import json
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Builder, Entity, Files, Occurrences, Prose, Record, SourceInfo
from kgkit.building.build import build_kb
from kgkit.building.occurrences import SurfaceHashes, count_occurrences
from kgkit.building.records import StoredRecords
from kgkit.candidates import AliasConfig, AliasGenerator, LemmaConfig, LemmaGenerator, SegmentGenerator
from kgkit.errors import DamagedKB, SourceError, UsageError
from kgkit.kb import differences
from kgkit.linking import Linker, LinkSettings
from kgkit.store import codec
from kgkit.store.validate import verify
from kgkit.types import NO_CANDIDATES, Document, Mention
from tests.cli_helpers import run
from tests.small_kb import FOLDING, build, fold, token_spans
from tests.toys import source_file
from tests.wiki_dumps import P, dump, write

# -- counting -----------------------------------------------------------------


def counted(surfaces: Sequence[str], texts: Sequence[Prose]) -> dict[str, tuple[float, float]]:
    """Return count and links of each surface that occurs, by what is measured."""
    names = sorted(set(map(fold, surfaces)))
    found: dict[str, tuple[float, float]] = {}
    for told in count_occurrences(lambda: iter(texts), SurfaceHashes.of(names, len(names), FOLDING), FOLDING):
        assert isinstance(told, Occurrences)
        count, linked = found.get(told.surface, (0, 0))
        found[told.surface] = count + told.count, linked + told.linked
    return found


def counted_slowly(surfaces: Sequence[str], texts: Sequence[Prose]) -> dict[str, tuple[float, float]]:
    """Return the same: every run of tokens of every text, folded whole."""
    names = set(map(fold, surfaces))
    found: dict[str, tuple[float, float]] = {}
    for text, links, own in texts:
        spans = token_spans(text)
        for place, (start, _) in enumerate(spans):
            for _, end in spans[place:]:
                run_of_tokens = text[start:end]
                name = fold(run_of_tokens)
                between = [text[a:b] for (_, a), (b, _) in pairwise(spans) if start < a < end]
                if name in names and name != fold(own) and not any(gap.count("\n") > 1 for gap in between):
                    count, linked = found.get(name, (0, 0))
                    found[name] = count + 1, linked + ((start, end) in links)
    return found


WORDS = st.sampled_from(["new", "New", "york", "York", "'s", "-", "in", "Straße", "苹", "果", "a", "."])
GAPS = st.sampled_from(["", " ", " ", "  ", "\n", "\n\n", "\n \n"])


@st.composite
def a_text(draw: st.DrawFn) -> str:
    return "".join(word + gap for word, gap in draw(st.lists(st.tuples(WORDS, GAPS), max_size=12)))


@st.composite
def a_prose(draw: st.DrawFn) -> Prose:
    text = draw(a_text())
    spans = token_spans(text)
    links = []
    if spans:
        ends = sorted(draw(st.lists(st.integers(0, len(spans) - 1), max_size=4, unique=True)))
        links = [(spans[a][0], spans[b][1]) for a, b in zip(ends[::2], ends[1::2], strict=False)]
    return Prose(text, links, draw(st.sampled_from(["", "York", "new york"])))


SURFACES = st.lists(a_text().map(fold).filter(bool), min_size=1, max_size=8)


@settings(deadline=None)
@given(SURFACES, st.lists(a_prose(), max_size=4))
def test_counts_are_those_of_every_run_of_tokens_looked_at_one_by_one(surfaces, texts):
    assert counted(surfaces, texts) == counted_slowly(surfaces, texts)


def test_a_surface_counts_within_a_longer_one_and_is_linked_only_as_a_whole():
    text = Prose("New York is in York; York's new  york.", [(0, 8), (15, 19)])
    assert counted(["York", "New York", "in York", "paris"], [text]) == {
        "york": (4, 1),
        "new york": (2, 1),
        "in york": (1, 0),
    }


def test_the_name_of_a_page_does_not_count_on_the_page_and_counts_on_others():
    pages = [Prose("York is old. New York is not.", (), "York"), Prose("York and York", [(0, 4)], "Paris")]
    assert counted(["York", "New York"], pages) == {"york": (2, 1), "new york": (1, 0)}


def test_no_occurrence_goes_on_behind_the_end_of_a_paragraph_or_a_text():
    assert counted(["new york"], [Prose("new\n\nyork new"), Prose("york new\nyork")]) == {"new york": (1, 0)}


def test_no_surface_and_no_text_count_nothing():
    assert counted([], [Prose("a")]) == counted(["a"], []) == counted(["a"], [Prose("")]) == {}


# -- a dump -------------------------------------------------------------------

PAGES = (
    P(
        "Sun",
        "The '''Sun''' {{about|Venus}} and [[Venus]]. Venus! <!-- Venus --> A [[star]]<ref>Venus</ref>s.",
    ),
    P(
        "Venus",
        "[[File:Venus.jpg|thumb|Venus near the [[Sun]]]]\n'''Venus''' is no [[Sun|sun]]; the sun is.\n"
        "== Sun ==\n{|\n| Venus || [[Sun]]\n|}\n* the ''Sun'' &amp; sun\n* [[Venus|sun]] and [[#Sun|sun]]\n"
        "[[Category:Sun]]",
    ),
    P("Star", "A [[star]] of [[Venus (god)|Venus]], [[Sun]]day."),
    P("Venus (god)", "Not [[Venus]]."),
    P("Sol", redirect="Sun"),
    P("Suns", "* [[Sun]]\n* [[Sol]], sun sun sun\n{{disambiguation}}"),
    P("Talk:Sun", "[[Sun]] sun", 1),
)
COUNTED = {
    "sun": (
        6,
        1,
    ),  # on Venus: [[Sun|sun]], the sun, ''Sun'', sun, a link to the page itself, one to a section
    "sunday": (1, 1),
    "venus": (3, 2),  # on Sun [[Venus]] and Venus!, on Star [[Venus (god)|Venus]]; not on Venus (god)
}
"""Nobody counts on a page of the name; `star` is said on Star and in the plural only."""


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    return write(tmp_path_factory.mktemp("dump") / "enwiki-20261101-pages-articles.xml", dump(PAGES))


def told(kb) -> dict[str, tuple[float, float]]:
    return {one.surface: (one.count, one.linked) for one in StoredRecords(kb).occurrences()}


@pytest.fixture(scope="module")
def home(dumped, tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    build_kb("wikipedia", dumped, name="memory", home=folder, engine="memory")
    return folder


@pytest.fixture
def kb(home):
    with kgkit.open_kb("memory", home=home) as kb:
        yield kb


def test_surfaces_are_counted_in_the_prose_of_a_dump(kb):
    assert told(kb) == COUNTED
    assert kb.link_probability(" SUN ") == pytest.approx(1 / 6)
    assert kb.link_probability("star") is kb.link_probability("nothing") is None
    assert verify(kb.store.folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_engine_of_tables_makes_the_same_build(kb, dumped, tmp_path, workers):
    pytest.importorskip("duckdb")
    folder = dumped if workers == 1 else tmp_path / "parts"
    if workers == 2:
        folder.mkdir()
        halves = (PAGES[:2], PAGES[2:])
        for number, pages in enumerate(halves, 1):
            write(folder / f"enwiki-20261101-pages-articles{number}.xml-p{number}p{number}.bz2", dump(pages))
    build_kb("wikipedia", folder, name="local", home=tmp_path, engine="local", workers=workers)
    with kgkit.open_kb("local", home=tmp_path) as local:
        assert told(local) == told(kb)
        if workers == 1:
            assert local.manifest.tables == kb.manifest.tables


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_texts_are_read_as_far_as_the_limit_says(dumped, tmp_path, engine):
    pytest.importorskip("duckdb")
    build_kb("wikipedia", dumped, name="few", home=tmp_path, engine=engine, limit=2)
    with kgkit.open_kb("few", home=tmp_path) as kb:
        assert told(kb) == {"sun": (6, 1), "venus": (2, 1)}


# -- what is kept -------------------------------------------------------------

RECORDS: tuple[Record, ...] = (
    Entity("london", "London"),
    Entity("london-ontario", "London"),
    Entity("in", "Indiana"),
    Entity("of", "Ofu"),
    Alias("London", "london", 3),
    Alias("London", "london-ontario", 1),
    Alias("in", "in", 1),
    Alias("of", "of", 1),
    Alias("unknown town", "of", 1),
    Occurrences("london", 15, 3),
    Occurrences("London", 5, 1),  # added up: 4 of 20
    Occurrences("in", 1000, 1),
    Occurrences("of", 400, 0),
    Occurrences("nobody", 7, 2),  # no alias
)


class Folder(Builder):
    """Yields records, by an engine of tables."""

    def __init__(self, records: Sequence[Record] = RECORDS) -> None:
        self.records = records

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Small"), [])

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        yield from self.records


@pytest.fixture
def small(tmp_path):
    with build(tmp_path / "small", RECORDS) as kb:
        yield kb


def test_occurrences_of_a_surface_are_added_up_and_those_of_no_alias_are_dropped(small, tmp_path):
    assert told(small) == {"london": (20, 4), "in": (1000, 1), "of": (400, 0)}
    assert small.manifest.counts.dropped["occurrences of no alias"] == 1
    pytest.importorskip("duckdb")
    built = build_kb(Folder(), source_file(tmp_path), name="local", home=tmp_path, engine="local")
    assert built.manifest.tables == small.manifest.tables
    assert built.manifest.counts == small.manifest.counts


def test_a_build_without_occurrences_is_as_it_was_before_there_were_any(small, tmp_path):
    plain = [record for record in RECORDS if not isinstance(record, Occurrences)]
    with build(tmp_path / "plain", plain) as kb:
        assert "occurrences" not in kb.manifest.tables
        assert kb.link_probability("London") is None
        assert {name: digest for name, digest in small.manifest.tables.items() if name != "occurrences"} == (
            kb.manifest.tables
        )
        assert [(one.what, one.change) for one in differences(kb, small)] == [("occurrences", "added")] * 3
        assert list(differences(small, small)) == []


def test_the_records_of_a_kb_and_json_lines_keep_link_probabilities(small, tmp_path):
    home = small.home.path.parents[1]
    assert run("kb", "export", "small", "-o", tmp_path / "small.jsonl", "--home", home).code == 0
    build_kb("jsonl", tmp_path / "small.jsonl", name="lines", home=home)
    with kgkit.open_kb("lines", home=home) as kb:
        assert list(differences(small, kb)) == []
    with build(tmp_path / "again", [*StoredRecords(small).everything()]) as kb:
        assert list(differences(small, kb)) == []
        assert kb.manifest.tables == small.manifest.tables


def test_adding_to_a_kb_adds_counts_and_keeps_those_that_are_there(small, tmp_path):
    home = small.home.path.parents[1]
    lines = [
        {"surface": "LONDON", "occurrences": 20, "linked": 6},
        {"surface": "nobody", "occurrences": 1, "linked": 0},
    ]
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, lines)))
    built = kgkit.add_to_kb("small", tmp_path / "more.jsonl", home=home)
    assert built.dropped == {"occurrences of no alias": 1}
    with kgkit.open_kb("small", home=home) as kb:
        assert told(kb) == {"london": (40, 10), "in": (1000, 1), "of": (400, 0)}
        assert verify(kb.store.folder) == []


def test_a_kb_without_occurrences_gets_them_by_an_addition(tmp_path):
    with build(tmp_path, [Entity("a"), Alias("a", "a", 1)]):
        pass
    (tmp_path / "more.jsonl").write_text('{"surface": "a", "occurrences": 4, "linked": 1}')
    built = kgkit.add_to_kb("small", tmp_path / "more.jsonl", home=tmp_path)
    with kgkit.open_kb("small", home=tmp_path) as kb:
        assert kb.link_probability("a") == 0.25
    assert verify(built.path) == []


@pytest.mark.parametrize(
    "line, sentence",
    [
        ({"surface": "a", "occurrences": 1}, "'linked' is missing"),
        ({"surface": "a", "linked": 1}, "'occurrences' is missing"),
        ({"surface": "a", "occurrences": 1, "linked": 2}, "more than the 1 'occurrences'"),
        ({"surface": "a", "occurrences": -1, "linked": 0}, "'occurrences' is -1"),
        ({"surface": "a", "occurrences": 1e-50, "linked": 0}, "'occurrences' is 1e-50, which is stored as 0"),
        ({"surface": "a", "occurrences": 1e300, "linked": 0}, "'occurrences' is 1e\\+300"),
        ({"surface": "", "occurrences": 1, "linked": 1}, "'surface' is empty"),
    ],
)
def test_a_line_that_cannot_be_is_refused_with_its_number(tmp_path, line, sentence):
    (tmp_path / "x.jsonl").write_text(f'{{"key": "a"}}\n{json.dumps(line)}\n')
    with pytest.raises(SourceError, match=sentence) as raised:
        build_kb("jsonl", tmp_path / "x.jsonl", home=tmp_path)
    assert raised.value.line == 2


def test_records_that_cannot_be_are_refused_by_every_engine(tmp_path):
    with pytest.raises(SourceError, match="links are occurrences too"):
        build(tmp_path, [Entity("a"), Alias("a", "a"), Occurrences("a", 1, 2)])
    for engine in ("memory", "local"):
        with pytest.raises(SourceError, match="stored as 0"):
            build_kb(
                Folder([Entity("a"), Alias("a", "a"), Occurrences("a", 1e-50, 0)]),
                source_file(tmp_path), name=engine, home=tmp_path, engine=engine,
            )  # fmt: skip


def test_the_least_counts_that_are_taken_can_be_read(tmp_path):
    line = {"surface": "a", "occurrences": 1e-44, "linked": 1e-50}
    (tmp_path / "x.jsonl").write_text(f'{{"key": "a"}}\n{{"alias": "a", "key": "a"}}\n{json.dumps(line)}\n')
    build_kb("jsonl", tmp_path / "x.jsonl", name="x", home=tmp_path)
    with kgkit.open_kb("x", home=tmp_path) as kb:
        assert kb.link_probability("a") == 1  # half a link of next to no occurrence: 1 at most
        assert verify(kb.store.folder) == []


@pytest.mark.parametrize("counts", [(1, 2), (1e-50, 0), (0, 0), (1e300, 0), (float("nan"), 0)])
def test_no_writer_makes_a_row_that_cannot_be_read(counts):
    with pytest.raises(ValueError, match="links of"):
        codec.pack_occurrences(*counts)


def test_a_row_that_cannot_be_is_damage():
    for row in (b"", b"1234", struct.pack("<ff", 1, 2), bytes(8), b"\xff" * 8):
        with pytest.raises(ValueError, match=r"instead of 8|links of"):
            codec.decode_occurrences(row)


def test_a_manifest_that_tells_of_occurrences_that_are_not_there_is_damage(small):
    path = small.store.folder / "manifest.json"
    says = msgspec.json.decode(path.read_bytes())
    del says["tables"]["occurrences"]
    path.chmod(0o644)
    path.write_bytes(msgspec.json.encode(says))
    with pytest.raises(DamagedKB, match="'occurrences'"):
        kgkit.open_kb("small", home=small.home.path.parents[1])


# -- candidates and links -----------------------------------------------------

TEXT = "London is in the unknown town of London"


def found(kb, **config) -> dict[str, tuple[list[float], float]]:
    """Return the priors of each mention's candidates, and NULL's."""
    told = {}
    for mention in AliasGenerator(kb, AliasConfig(**config)).mentions(TEXT):
        candidates = mention.candidates or NO_CANDIDATES
        told[mention.text] = (
            [round(prior, 4) for prior in candidates.priors.tolist()],
            round(candidates.null, 4),
        )
    return told


def test_null_has_what_link_probability_leaves_and_priors_share_the_rest(small):
    assert found(small) == {"London": ([0.15, 0.05], 0.8), "unknown town": ([1.0], 0.0)}


def test_a_null_that_was_asked_for_comes_on_top(small):
    assert found(small, null=0.5) == {"London": ([0.075, 0.025], 0.9), "unknown town": ([0.5], 0.5)}


def test_the_least_link_probability_decides_what_is_a_mention_and_0_takes_all(small):
    assert set(found(small, min_link_probability=0)) == {"London", "in", "unknown town", "of"}
    assert set(found(small, min_link_probability=0.001)) == {"London", "in", "unknown town", "of"}
    assert set(found(small, min_link_probability=0.3)) == {"unknown town"}
    # What was never a link counts as half a link: `of` has 0.5 / 400.
    assert found(small, min_link_probability=0)["of"] == ([0.0012], 0.9988)
    assert "of" not in found(small, min_link_probability=0.0013)
    with pytest.raises(UsageError, match="min_link_probability"):
        AliasConfig(min_link_probability=1.5)


def test_a_given_mention_is_one_whatever_its_link_probability(small):
    document = Document("d", "in London", mentions=[Mention(0, 2, "in"), Mention(3, 9, "London")])
    [filled] = AliasGenerator(small)([document])
    assert [one.candidates.null for one in filled.mentions] == [0, 0]
    assert [one.candidates.priors.tolist() for one in filled.mentions] == [[1.0], [0.75, 0.25]]


def test_segments_are_asked_about_too(small):
    generator = SegmentGenerator(small, lambda text: [(0, 6), (10, 12)])
    assert [one.text for one in generator.mentions(TEXT)] == ["London"]


def test_a_link_is_kept_by_default_and_its_score_is_what_the_threshold_reads(small):
    def links(**config):
        [linked] = Linker(small, LinkSettings(**config))([TEXT])
        return [(link.text, link.entity, link.score, link.nil) for link in linked.links]

    assert links() == [
        ("London", "london", 0.15, False),
        ("unknown town", "of", 1.0, False),
        ("London", "london", 0.15, False),
    ]
    assert [text for text, *_ in links(threshold=0.2)] == ["unknown town"]
    assert links(threshold=0.2, nil=True)[0] == ("London", None, 0.85, True)
    assert [text for text, *_ in links(coherence="graph")] == [text for text, *_ in links()]


def test_a_null_that_was_asked_for_is_weighed_against_the_candidates_alone(small):
    for null, kept in ((0.4, True), (0.45, False)):  # (1 - null) * 0.75 against null
        generator = AliasGenerator(small, AliasConfig(null=null))
        [linked] = Linker(small, generator=generator)(["London"])
        assert bool(linked.links) == kept


def test_commands_tell_the_link_probability_where_there_is_one(small):
    home = small.home.path.parents[1]
    shown = run("show", "london", "--kb", "small", "--home", home)
    assert "link probability of 'London': 0.2" in shown.out
    assert (
        json.loads(run("show", "london", "--kb", "small", "--home", home, "--json").out)["link_probability"]
        == 0.2
    )
    done = run("candidates", "london", "--kb", "small", "--home", home)
    assert "link probability of 'london': 0.2" in done.err
    rows = json.loads(run("candidates", "london", "--kb", "small", "--home", home, "--json").out)
    assert [row["link_probability"] for row in rows] == [0.2, 0.2]
    assert [row["prior"] for row in rows] == [0.75, 0.25]
    unknown = run("candidates", "unknown town", "--kb", "small", "--home", home, "--json")
    assert "link_probability" not in json.loads(unknown.out)[0]


def test_a_surface_counted_once_is_no_likelier_than_certain(tmp_path):
    with build(tmp_path, [Entity("a"), Alias("a", "a"), Occurrences("a", 0.25, 0)]) as kb:
        assert kb.link_probability("a") == 1


def test_lemmas_are_sought_by_link_probability_too_and_forms_by_that_of_their_lemma(tmp_path):
    records = [
        Entity("dog", pos="n"), Alias("dog", "dog", 1), Occurrences("dog", 1000, 0),
        Entity("hot dog", pos="n"), Alias("hot dog", "hot dog", 1), Occurrences("hot dog", 4, 1),
        Entity("cat", pos="n"), Alias("Cat", "cat", 1),
    ]  # fmt: skip
    with build(tmp_path, records, generator="lemma", smoothing=1.0) as kb:

        def likely(**config) -> dict[str, float]:
            mentions = LemmaGenerator(kb, LemmaConfig(**config)).mentions(
                "Two hot dogs, a dog, dogs and a cat"
            )
            return {one.text: (one.candidates or NO_CANDIDATES).link_probability for one in mentions}

        assert likely() == {"hot dogs": 0.25, "cat": 1}
        every = {"hot dogs": 0.25, "dogs": 0.0005, "dog": 0.0005, "cat": 1}
        assert likely(all_surfaces=True) == likely(min_link_probability=0) == every
        [given] = LemmaGenerator(kb)([Document("d", "a dog", mentions=[Mention(2, 5, "dog")])])
        assert [one.candidates.null for one in given.mentions] == [0]
