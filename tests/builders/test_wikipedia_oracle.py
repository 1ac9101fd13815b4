"""Every sample of a real dump beside the count of `wikipedia_oracle`, which mwparserfromhell makes.

What differs is listed here, and told in `docs/wikipedia.md`.
"""

from collections import Counter
from collections.abc import Mapping
from string import punctuation

import pytest

pytest.importorskip("mwparserfromhell")

from tests import wikipedia_oracle
from tests.wiki_dumps import P, Seen, dump, seen, write
from tests.wikipedia_oracle import Count

SAMPLES = {
    "gensim": "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    "table markup": "enwiki-table-markup.xml.bz2",
    "wikipedia2vec": "enwiki-pages-articles-sample.xml.bz2",
}
SIZES = {"gensim": (106, 99, 23_600), "table markup": (5, 0, 1_715), "wikipedia2vec": (2, 1, 269)}

# An apostrophe too many: `[[1990 ATP Tour World Championships – Singles|'''W]]`. MediaWiki ends bold text
# with the line; mwparserfromhell keeps the marks as text, and loses the last of these links.
UNCLOSED = (
    "1992 Wimbledon Championships – Men's Singles",
    "1994 US Open – Men's Singles",
    "1999 US Open – Men's Singles",
)
LOST = "1990 ATP Tour World Championships – Singles"
# Texts with templates: mwparserfromhell leaves them out, `{{vr|r}}` cannot be read.
WITH_TEMPLATES = {
    "29° N": "29th parallel north",
    "39° N": "39th parallel north",
    "60° E": "60th meridian east",
    "75° E": "75th meridian east",
    "in shā’ Allāh": "Insha'Allah",
    "bismillāh": "Basmala",
    "lā ilāha illā Allāh": "Shahada",
    "alif": "Aleph",
    "shaddah": "Shadda",
    "Ilāh": "Ilah",
    "(1778–83)": "Anglo-French War (1778–83)",
    "(1779–83)": "Spain in the American Revolutionary War",
    "altitude of 100 km": "Edge of space",
}
WITHOUT_TEMPLATES = {
    "(177883)": "Anglo-French War (1778–83)",
    "(177983)": "Spain in the American Revolutionary War",
    "altitude of": "Edge of space",
    "before": "English-language vowel changes before historic /r/",
}
ONLY_OURS = {
    "gensim": (
        {("Andre Agassi", LOST)},
        {
            **dict.fromkeys((("W", title) for title in [*UNCLOSED, LOST]), 1),
            **dict.fromkeys(WITH_TEMPLATES.items(), 1),
        },
    )
}
Differences = Mapping[str, tuple[set[tuple[str, str]], Mapping[tuple[str, str], int]]]
ONLY_THEIRS: Differences = {"gensim": (set(), dict.fromkeys(WITHOUT_TEMPLATES.items(), 1))}
NOTHING: tuple[set[tuple[str, str]], Mapping[tuple[str, str], int]] = (set(), {})


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) if name == "gensim" else name for name in SAMPLES],
)
def sample(request, shared_data):
    """The name of a sample, what the builder makes of it, and what the oracle counts."""
    path = shared_data / "wikipedia" / SAMPLES[request.param]
    return request.param, seen(path), wikipedia_oracle.count(path)


def anchors(found: Seen) -> Counter[tuple[str, str]]:
    return +found.counts


def links(found: Seen) -> set[tuple[str, str]]:
    return {(page, target) for page, targets in found.links.items() for target in targets}


def test_pages_redirects_numbers_and_categories_are_the_same(sample):
    name, ours, theirs = sample
    assert set(ours.entities) == theirs.pages
    assert {key: to for key, to in ours.redirects.items() if not key.startswith("curid:")} == theirs.redirects
    assert {key: to for key, to in ours.redirects.items() if key.startswith("curid:")} == {
        f"curid:{number}": title for title, number in theirs.ids.items()
    }
    assert {
        key: page.attributes.get("categories", []) for key, page in ours.entities.items()
    } == theirs.categories
    assert {key for key, page in ours.entities.items() if page.kind == "disambiguation"} == theirs.ambiguous
    assert (len(theirs.pages), len(theirs.redirects), len(theirs.links)) == SIZES[name]


def test_links_are_the_same_but_for_those_that_are_explained(sample):
    name, ours, theirs = sample
    ours, theirs = links(ours), set(theirs.links)
    assert ours - theirs == ONLY_OURS.get(name, NOTHING)[0]
    assert theirs - ours == ONLY_THEIRS.get(name, NOTHING)[0]
    assert len(ours & theirs) >= 0.995 * max(len(ours), len(theirs))


def test_pairs_of_alias_and_page_are_the_same_but_for_those_that_are_explained(sample):
    name, ours, theirs = sample
    counted = anchors(ours)
    marks = {pair for pair in theirs.pairs if not pair[0].strip(f"{punctuation}—")}
    assert counted.keys().isdisjoint(marks)
    theirs.pairs = Counter({pair: count for pair, count in theirs.pairs.items() if pair not in marks})
    assert counted - theirs.pairs == Counter(ONLY_OURS.get(name, NOTHING)[1])
    assert theirs.pairs - counted == Counter(ONLY_THEIRS.get(name, NOTHING)[1])
    assert (counted & theirs.pairs).total() >= 0.995 * max(counted.total(), theirs.pairs.total())


def test_the_oracle_and_the_builder_read_a_small_dump_alike(tmp_path):
    pages = [
        P(
            "Dog",
            "{{Infobox|a=[[leg]]s|b={{c|[[tail|long ''tail'']]}}}}\n"
            "[[File:Dog.jpg|thumb|A [[dog]]'s [[Ear (organ)|ear]]]]\n"
            "The '''dog'''<ref>{{cite|t=[[Book]]}}</ref> is an [[animal]]<!-- [[x]] -->. "
            "<nowiki>[[y]]</nowiki>\n"
            "{| class=a\n! [[head]]\n|-\n| [[cell|the <b>cell</b>]] || {{d}}\n|}\n"
            "<gallery>\nA.jpg|[[Gallery]]\n</gallery>\n"
            "* [[:Category:Dogs]] [[fr:Chien]] [http://x.org [[inner]] y] [[a_b#c]] [[caf&eacute;|K]]\n"
            "[[Category:Dogs|x]]",
        ),
        P("Hound", "#REDIRECT [[Dog]]", redirect="Dog"),
        P("Talk:Dog", "[[x]]", 1),
        P("Rex", "* [[Rex (dog)|Rex]]\n{{disambiguation}}"),
    ]
    path = write(tmp_path / "dump.xml.bz2", dump(pages))
    ours, theirs = seen(path), wikipedia_oracle.count(path)
    assert isinstance(theirs, Count) and len(theirs.links) == 12
    assert links(ours) == set(theirs.links)
    assert anchors(ours) == theirs.pairs
    assert theirs.ambiguous == {"Rex"}
