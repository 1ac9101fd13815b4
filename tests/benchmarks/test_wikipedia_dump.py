"""The dumps that `docs/scale.md` is measured with: what they hold, and that they are the same each time."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import wikipedia_dump as generator
from kb_builders.wikipedia import WikipediaBuilder
from kgkit.building import Aliases, Attribute, Entity, Record, Redirect, Step, Triples

ARTICLES = 400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    generator.write(folder, ARTICLES)
    return folder


def records(source: Path) -> Iterator[Record | Step]:
    builder = WikipediaBuilder()
    builder.look(source)
    for part in builder.parts(source):
        yield from builder.observe(source, part)


def test_the_same_articles_and_seed_give_the_same_bytes_and_another_seed_others(made, tmp_path):
    generator.write(tmp_path / "again", ARTICLES)
    generator.write(tmp_path / "other", ARTICLES, seed=2)
    for file in made.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()
    dump = f"{generator.STEM}-pages-articles.xml"
    assert (tmp_path / "other" / dump).read_bytes() != (made / dump).read_bytes()


def test_several_files_of_bz2_hold_the_pages_of_the_one_file(made, tmp_path):
    generator.write(tmp_path, ARTICLES, files=3)
    assert len([*tmp_path.glob("*.bz2")]) == 3
    told = [record for record in records(made) if not isinstance(record, Step | Aliases | Attribute)]
    assert [
        record for record in records(tmp_path) if not isinstance(record, Step | Aliases | Attribute)
    ] == told


def test_a_dump_has_articles_of_the_size_and_with_the_links_that_are_promised(made):
    articles = [
        page
        for page in generator.pages(ARTICLES, 0, ARTICLES, seed=1)
        if not page.redirect and not page.namespace and "{{disambiguation}}" not in page.text
    ]
    assert len(articles) == ARTICLES
    sizes = [len(page.text.encode()) for page in articles]
    assert 10_000 < sum(sizes) / ARTICLES < 14_000
    assert min(sizes) < 2_000
    assert max(sizes) > 50_000
    assert 25 < sum(page.text.count("[[") for page in articles) / ARTICLES < 38  # three are categories


def test_no_two_pages_have_one_title():
    titles = Counter(page.title for page in generator.pages(2_000, 0, 2_000, seed=1))
    assert titles.most_common(1)[0][1] == 1


def test_the_pages_of_a_range_are_those_of_the_whole():
    whole = [*generator.pages(ARTICLES, 0, ARTICLES, seed=1)]
    halves = [*generator.pages(ARTICLES, 0, 150, seed=1), *generator.pages(ARTICLES, 150, ARTICLES, seed=1)]
    assert halves == whole


def test_most_links_lead_to_an_article_the_first_ones_most_often_and_some_by_a_redirect_or_nowhere(made):
    told = [*records(made)]
    keys = {record.key for record in told if isinstance(record, Entity)}
    redirects = {record.source for record in told if isinstance(record, Redirect)}
    targets = Counter(key for record in told if isinstance(record, Triples) for key in record.objects)
    total = targets.total()
    assert 0.8 < sum(count for key, count in targets.items() if key in keys) / total < 0.95
    assert 0.05 < sum(count for key, count in targets.items() if key in redirects) / total < 0.15
    assert 0 < sum(count for key, count in targets.items() if key not in keys | redirects) / total < 0.05
    first = sum(targets[generator.title(number)] for number in range(ARTICLES // 10))
    assert first > 0.3 * total


def test_there_are_one_and_two_fifths_redirects_for_an_article_and_all_lead_to_a_page(made):
    told = [*records(made)]
    keys = {record.key for record in told if isinstance(record, Entity)}
    redirects = {record.source: record.target for record in told if isinstance(record, Redirect)}
    named = {source: target for source, target in redirects.items() if source[:6] != "curid:"}
    by_title = {source: target for source, target in named.items() if not source[1:].isdigit()}
    assert len(by_title) == 1.4 * ARTICLES
    assert all(target in keys or target in by_title for target in by_title.values())
    assert any(target in by_title for target in by_title.values())  # twice around


def test_page_props_tell_a_wikidata_id_of_each_article(made):
    items = [record for record in records(made) if isinstance(record, Attribute)]
    kinds = Counter(record.kind for record in records(made) if isinstance(record, Entity))
    assert kinds["page"] == ARTICLES
    assert kinds["disambiguation"] == -(-ARTICLES // 64)
    assert len(items) == kinds.total()
    assert len({item.value for item in items}) == len(items)


def test_names_are_told_apart_by_brackets(made):
    same = [generator.title(number) for number in range(5)]
    assert len({title.partition(" (")[0] for title in same}) == 1
    assert len(set(same)) == 5
    pages = islice(generator.pages(ARTICLES, 0, ARTICLES, seed=1), 20)
    meanings = next(page for page in pages if page.title == generator.name(0))
    assert all(f"[[{title}]]" in meanings.text for title in same)
