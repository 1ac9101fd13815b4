"""Knowledge bases made of dumps."""

import gzip

import pytest

import kgkit
from kgkit.errors import NotThere, SourceError, UnknownEntity
from tests.builders.test_wikipedia_page_props import table
from tests.wiki_dumps import P, dump, multistream, write

pytest.importorskip("duckdb")

PAGES = [
    P(
        "Mercury (planet)",
        "'''Mercury''' is a [[planet]] of the [[Sun]], like [[Venus]].\n[[Category:Planets]]",
    ),
    P("Mercury (god)", "'''Mercury''' is a god of [[Rome]]; see [[Mercury (planet)|the planet]]."),
    P("Mercury", "* [[Mercury (planet)]]\n* [[Mercury (god)]]\n* [[Freddie Mercury]]\n{{disambiguation}}"),
    P(
        "Sun",
        "The [[Mercury (planet)|Mercury]] is near, [[hermes]] not. [[Mercury (planet)|Mercury]]! [[The Sun]]",
    ),
    P("Hermes", redirect="Mercury (god)"),
    P("The Sun", redirect="Sol"),
    P("Sol", redirect="The Sun"),
    P("Talk:Sun", "[[Mercury (god)|Mercury]]", 1),
    P("Venus", "''Venus'' and [[Mercury (god)|Mercury]]."),
]
PROPS = table("(1,'wikibase_item','Q308',NULL),(4,'wikibase_item','Q525',NULL),(8,'wikibase_item','Q9',NULL)")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder with a multistream dump, its index and its page properties."""
    folder = tmp_path_factory.mktemp("dump")
    multistream(folder / "enwiki-20261101-pages-articles-multistream.xml.bz2", PAGES)
    (folder / "enwiki-20261101-page_props.sql.gz").write_bytes(gzip.compress(PROPS.encode()))
    return folder


@pytest.fixture(scope="module")
def kb(source, tmp_path_factory):
    """The KB of it."""
    home = tmp_path_factory.mktemp("home")
    kgkit.build_kb("wikipedia", source, home=home)
    with kgkit.open_kb("wikipedia", home=home) as kb:
        yield kb


def priors(kb, surface):
    return {found.entity.key: round(found.prior, 3) for found in kb.decode(kb.candidates(surface))}


def test_pages_are_in_the_order_of_the_dump(kb):
    assert [entity.key for entity in kb] == ["Mercury (planet)", "Mercury (god)", "Mercury", "Sun", "Venus"]
    assert kb.manifest.counts.entities == {"page": 4, "disambiguation": 1}


def test_a_page_is_found_by_its_title_its_number_its_wikidata_id_and_its_redirects(kb):
    for key in ("Mercury (planet)", "curid:1", "Q308"):
        assert kb[key].key == "Mercury (planet)"
    for key in ("Mercury (god)", "curid:2", "Hermes", "curid:5"):
        assert kb[key].key == "Mercury (god)"
    assert kb["Q525"].attributes == {"page_id": 4, "wikidata": "Q525"}
    assert kb["curid:1"].attributes == {"page_id": 1, "categories": ["Planets"], "wikidata": "Q308"}
    with pytest.raises(UnknownEntity):
        kb["Q9"]


def test_priors_are_shares_of_links(kb):
    assert priors(kb, "Mercury") == {"Mercury (planet)": 0.667, "Mercury (god)": 0.333}
    assert priors(kb, "the planet") == {"Mercury (planet)": 1.0}
    assert priors(kb, "hermes") == {"Mercury (god)": 1.0}


def test_links_are_told_in_both_directions(kb):
    assert [page.key for page in kb.neighbors("Mercury (planet)", "links_to")] == ["Sun", "Venus"]
    assert [page.key for page in kb.neighbors("Sun", "links_to")] == ["Mercury (planet)", "Mercury (god)"]
    assert [page.key for page in kb.neighbors("Mercury (god)", "links_to", direction="in")] == [
        "Mercury",
        "Sun",
        "Venus",
    ]


def test_what_it_is_stands_in_the_manifest(kb):
    info = kb.manifest.source
    assert (info.name, info.version, info.date, info.licence) == (
        "Wikipedia",
        "enwiki 2026-11-01",
        "2026-11-01",
        "CC BY-SA 4.0",
    )


def test_the_engine_in_memory_makes_the_same_of_a_dump(tmp_path):
    path = write(tmp_path / "dump.xml", dump(PAGES))
    one = kgkit.build_kb("wikipedia", path, home=tmp_path / "a", engine="memory")
    other = kgkit.build_kb("wikipedia", path, home=tmp_path / "b")
    assert one.build == other.build


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_a_limit_is_one_of_pages_and_leaves_out_no_link_of_theirs(tmp_path, limit):
    pages = [P(f"Page {number}", "[[Page 0|first]]") for number in range(20)]
    path = write(tmp_path / "dump.xml", dump(pages))
    kgkit.build_kb("wikipedia", path, home=tmp_path, limit=limit)
    with kgkit.open_kb("wikipedia", home=tmp_path) as kb:
        assert len(list(kb)) == limit
        assert len(kb.candidates("first")) == (limit > 1)


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ([P("Dog", "x"), P("Cat", "y"), P("Dog", "z")], "'Dog'"),
        ([P("Dog", "x"), P("dog", "\x01")], "is not well-formed XML"),
    ],
)
def test_nothing_is_published_of_a_bad_dump(tmp_path, pages, said):
    path = write(tmp_path / "dump.xml", dump(pages))
    with pytest.raises(SourceError, match=said):
        kgkit.build_kb("wikipedia", path, home=tmp_path / "home")
    with pytest.raises(NotThere):
        kgkit.open_kb("wikipedia", home=tmp_path / "home")


@pytest.mark.slow
def test_a_sample_of_the_real_one_can_be_asked(shared_data, tmp_path):
    source = (
        shared_data / "wikipedia" / "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
    )
    built = kgkit.build_kb("wikipedia", source, home=tmp_path)
    assert built.manifest.counts.entities == {"page": 98, "disambiguation": 8}
    with kgkit.open_kb("wikipedia", home=tmp_path) as kb:
        assert kb["curid:12"].key == "Anarchism"
        assert list(priors(kb, "agriculture")) == ["Agriculture"]
        assert "Agriculture" in [page.key for page in kb.neighbors("Anarchism", "links_to")]
        assert kb["Albedo"].description.startswith("Albedo or reflection coefficient, derived from Latin")


def test_no_surface_consists_of_marks_alone(tmp_path):
    pages = [
        P("Apostrophe", "The [[mark]] [[apostrophe|']], [[Apostrophe|''{{lang|fr|’}}'']], ''[[Euro|€]]''."),
        P("Mark", "[[!!!]] [[Euro|–]] [[?!|?]] [[Star (mark)|★]] [[C++]]"),
        P("'", redirect="Apostrophe"),
        P("!!!", "'''!!!''' is a band."),
        P("? (film)", "A film."),
        P("?!", "* [[Mark]]\n{{disambiguation}}"),
        P("Euro", "Money."),
        P("Star (mark)", "A mark."),
        P("C++", "A language."),
    ]
    kgkit.build_kb("wikipedia", write(tmp_path / "dump.xml", dump(pages)), home=tmp_path)
    with kgkit.open_kb("wikipedia", home=tmp_path) as kb:
        for surface in ("'", "’", "!!!", "–", "?", "?!"):
            assert priors(kb, surface) == {}
        assert priors(kb, "€") == {"Euro": 1.0} and priors(kb, "★") == {"Star (mark)": 1.0}
        assert set(priors(kb, "C++")) == {"C++"} and set(priors(kb, "? (film)")) == {"? (film)"}
        assert kb["!!!"].key == "!!!" and kb["'"].key == "Apostrophe"
