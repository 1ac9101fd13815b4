"""What the builder yields for each kind of page."""

import pytest

from kb_builders.wikipedia import WikipediaBuilder
from kgkit.building import Aliases, Entity, Step, Triples
from tests.wiki_dumps import P, dump, observed, seen, seen_in, write

DOG = P(
    "Dog",
    "{{Infobox}}\nThe '''dog''' is an [[animal]]. It has [[leg]]s and [[Leg|four legs]].\n\n"
    "See [[Cat]], [[#Breeds|breeds]], [[Dog]], [[dog#Breeds]] and [[Cat]].\n[[Category:Dogs]]\n"
    "[[category:animals|Dog]]",
)
MERCURY = P(
    "Mercury (disambiguation)",
    "'''Mercury''' may mean:\n* [[Mercury (planet)|the planet]] near the [[Sun]]\n* [[Mercury (god)]]\n"
    "** a [[song]]\n* no link\n* [[Mercury (planet)]]\n\n[[Category:Metals]]\n{{disambiguation}}",
)


def test_a_page_is_an_entity(tmp_path):
    found = seen_in(tmp_path, P("Cat", "A '''cat'''.", 0), DOG)
    dog = found.entities["Dog"]
    assert (dog.label, dog.kind, dog.description) == (
        "Dog",
        "page",
        "The dog is an animal. It has legs and four legs.",
    )
    assert dog.attributes == {"page_id": 2, "categories": ["Dogs", "Animals"]}
    assert found.entities["Cat"].attributes == {"page_id": 1}
    assert [*found.entities] == ["Cat", "Dog"]


def test_links_are_told_once_each_in_their_order_without_the_page_itself(tmp_path):
    assert seen_in(tmp_path, DOG).links == {"Dog": ["Animal", "Leg", "Cat"]}


def test_anchors_are_counted_and_titles_are_aliases_that_nobody_counted(tmp_path):
    assert seen_in(tmp_path, DOG, P("Cat", "A [[dog]]'s enemy, no [[leg]]s.")).counts == {
        ("Dog", "Dog"): 0,
        ("Cat", "Cat"): 2,
        ("animal", "Animal"): 1,
        ("legs", "Leg"): 2,
        ("four legs", "Leg"): 1,
        ("dog", "Dog"): 1,
    }


def test_a_page_with_a_bracket_is_meant_without_it_too(tmp_path):
    assert seen_in(tmp_path, P("Mercury (planet)", "x"), P("李娜（歌手）", "y")).counts == {
        ("Mercury (planet)", "Mercury (planet)"): 0,
        ("Mercury", "Mercury (planet)"): 0,
        ("李娜（歌手）", "李娜（歌手）"): 0,
        ("李娜", "李娜（歌手）"): 0,
    }


def test_the_number_of_a_page_is_a_key(tmp_path):
    found = seen_in(tmp_path, P("Dog"), P("Hound", redirect="Dog"), P("Cat"))
    assert found.redirects == {"curid:1": "Dog", "curid:2": "Hound", "Hound": "Dog", "curid:3": "Cat"}


def test_a_redirect_is_another_key_and_an_alias(tmp_path):
    found = seen_in(tmp_path, P("Hound", "#REDIRECT [[Dog#Breeds]]", redirect="Dog#Breeds"))
    assert found.redirects == {"Hound": "Dog", "curid:1": "Hound"}
    assert found.counts == {("Hound", "Dog"): 0}
    assert not found.entities and not found.links


@pytest.mark.parametrize(
    "text",
    [
        "#REDIRECT [[Dog]]",
        "#redirect: [[dog#Breeds|x]]",
        "\n #REDIRECT[[:Dog]] {{R}}",
        "#WEITERLEITUNG [[Dog]]",
        "#重定向 [[Dog]]",
        "＃転送[[Dog]]",
        "#ПЕРЕНАПРАВЛЕНИЕ [[Dog]]",
        "#перенаправление [[Dog]]",
    ],
)
def test_old_dumps_say_of_a_redirect_in_its_text_only(tmp_path, text):
    assert seen_in(tmp_path, P("Hound", text)).redirects["Hound"] == "Dog"


@pytest.mark.parametrize("text", ["# a list with a [[dog]]", "#REDIRECTS to [[dog]]", "x #REDIRECT [[dog]]"])
def test_a_list_is_no_redirect(tmp_path, text):
    assert [*seen_in(tmp_path, P("Hound", text)).entities] == ["Hound"]


def test_a_redirect_to_another_namespace_or_wiki_is_left_out(tmp_path):
    found = seen_in(
        tmp_path,
        P("Dog help", redirect="Help:Dogs"),
        P("Chien", redirect="fr:Chien"),
        P("Dogs", redirect="Category:Dogs"),
        P("Nothing", redirect=""),
    )
    assert not found.redirects and not found.counts and not found.entities
    assert found.units == 4


def test_other_namespaces_count_as_pages_read_and_give_nothing(tmp_path):
    found = seen_in(
        tmp_path,
        P("Talk:Dog", "[[dog]]", 1),
        P("Dog"),
        P("Category:Dogs", "[[dog]]", 14),
        P("File:A.jpg", "", 6),
    )
    assert [*found.entities] == ["Dog"]
    assert found.counts == {("Dog", "Dog"): 0}
    assert found.units == 4


def test_a_dump_without_namespaces_of_pages_has_them_in_the_titles(tmp_path):
    found = seen_in(
        tmp_path, P("Talk:Dog", "", None), P("Dog", "", None), P("2001: A Space Odyssey", "", None)
    )
    assert [*found.entities] == ["Dog", "2001: A Space Odyssey"]


def test_a_disambiguation_page_gives_its_title_a_meaning_for_each_item(tmp_path):
    found = seen_in(tmp_path, MERCURY)
    mercury = found.entities["Mercury (disambiguation)"]
    assert mercury.kind == "disambiguation"
    assert mercury.attributes["categories"] == ["Metals"]
    assert found.counts == {
        ("Mercury", "Mercury (planet)"): 0,
        ("Mercury", "Mercury (god)"): 0,
        ("Mercury", "Song"): 0,
    }
    assert found.links == {"Mercury (disambiguation)": ["Mercury (planet)", "Sun", "Mercury (god)", "Song"]}


@pytest.mark.parametrize(
    ("language", "title", "text"),
    [
        ("en", "Mercury", "{{Disambig}}"),
        ("en", "Mercury", "{{ disambiguation | planet }}"),
        ("en", "Mercury", "{{dab}}"),
        ("en", "Mercury", "{{Hndis|name=x}}"),
        ("en", "Mercury", "{{Place name disambiguation}}"),
        ("en", "Mercury", "{{human name disambiguation cleanup}}"),
        ("en", "Mercury", "__DISAMBIG__"),
        ("en", "Mercury (disambiguation)", ""),
        ("de", "Mercury", "{{Begriffsklärung}}"),
        ("de", "Mercury (Begriffsklärung)", ""),
        ("fr", "Mercury", "{{Homonymie}}"),
        ("fr", "Mercury", "{{homonymie de personnes}}"),
        ("es", "Mercury", "{{desambiguación}}"),
        ("zh", "水星", "{{disambig}}"),
        ("zh", "水星", "{{消歧义}}"),
        ("zh", "水星", "{{消歧義頁}}"),
        ("zh", "水星 (消歧义)", ""),
        ("zh", "水星（消歧義）", ""),
        ("ja", "水星", "{{aimai}}"),
        ("ru", "Меркурий", "{{неоднозначность}}"),
        ("ru", "Меркурий (значения)", ""),
        ("it", "Mercurio", "{{disambigua}}"),
        ("nl", "Mercurius", "{{dp}}"),
        ("pt", "Mercúrio", "{{Desambiguação}}"),
        ("sv", "Merkurius", "{{Gren}}"),
    ],
)
def test_disambiguation_pages_of_many_languages_are_known(tmp_path, language, title, text):
    found = seen_in(tmp_path, P(title, f"* [[x]]\n{text}"), language=language)
    assert found.entities[title].kind == "disambiguation"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "{{disambiguation needed|date=May 2026}}"),
        ("en", "{{other uses}} {{about|x|y|Dog (disambiguation)}}"),
        ("en", "[[Dog (disambiguation)]]"),
        ("de", "{{Begriffsklärungshinweis}}"),
        ("fr", "{{Voir homonymes|Mercury}}"),
        ("de", "{{dp}}"),
        ("en", "x" * 20_000 + "\n{{disambig}}\n" + "x" * 20_000),
    ],
)
def test_a_page_that_points_to_a_disambiguation_page_is_none(tmp_path, language, text):
    assert seen_in(tmp_path, P("Dog", text), language=language).entities["Dog"].kind == "page"


def test_what_a_long_disambiguation_page_is_stands_at_its_end(tmp_path):
    text = "* [[x]]\n" * 9_000 + "{{disambig}}\n[[de:x]]\n" * 3
    assert seen_in(tmp_path, P("X", text)).entities["X"].kind == "disambiguation"


def test_the_last_revision_counts(tmp_path):
    text = dump([P("Dog", "[[old]]")])
    again = text.replace(
        "    <revision>", "<revision><id>1</id><text>[[oldest]]</text></revision><revision>", 1
    )
    assert seen(write(tmp_path / "dump.xml", again)).links == {"Dog": ["Old"]}


def test_a_german_wikipedia(tmp_path):
    found = seen_in(
        tmp_path,
        P(
            "Hund (Tier)",
            "[[Datei:Hund.jpg|mini|Ein [[Hündchen]]]]\n{{Infobox}}\nDer '''Hund''' ist ein "
            "[[Haustier]]chen.\n\n[[Kategorie:Haustier]]\n[[Category:Hund]]\n[[en:Dog]]",
        ),
        language="de",
    )
    hund = found.entities["Hund (Tier)"]
    assert hund.description == "Der Hund ist ein Haustierchen."
    assert hund.attributes["categories"] == ["Haustier", "Hund"]
    assert found.links == {"Hund (Tier)": ["Hündchen", "Haustier"]}
    assert found.counts["Haustierchen", "Haustier"] == found.counts["Hündchen", "Hündchen"] == 1


def test_a_chinese_wikipedia(tmp_path):
    found = seen_in(
        tmp_path,
        P(
            "狗",
            "[[File:Dog.jpg|thumb|一只[[小狗]]]]\n'''狗'''（{{lang|la|Canis}}）是[[狼]]的"
            "[[亚种|-{zh-hans:亚种; zh-hant:亞種}-]]。\n\n[[Category:犬]]",
        ),
        language="zh",
    )
    assert found.entities["狗"].description == "狗（Canis）是狼的亚种。"
    assert found.links == {"狗": ["小狗", "狼", "亚种"]}


def test_steps_come_behind_all_that_belongs_to_their_pages(tmp_path):
    """Whoever stops at a step has the links of the pages before it: `--limit` does."""
    pages = [P(f"Page {number}", f"[[page {number + 1}|next]]") for number in range(250)]
    records = observed(write(tmp_path / "dump.xml", dump(pages)))
    told = read = links = 0
    for record in records:
        match record:
            case Entity():
                read += 1
            case Aliases():
                links += sum(record.counts.values())
            case Step():
                told += record.units
                assert told == read == links
    assert told == 250
    assert sum(type(record) is Triples for record in records) == 250


def test_the_first_steps_are_single_pages(tmp_path):
    records = observed(write(tmp_path / "dump.xml", dump(P(f"Page {number}") for number in range(130))))
    assert [record.units for record in records if type(record) is Step] == [1] * 100 + [10] * 3


def test_links_are_given_out_after_so_much_text_even_of_few_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("kb_builders.wikipedia.builder._CHARACTERS", 1_000)
    monkeypatch.setattr("kb_builders.wikipedia.builder._pages_at_once", lambda total: 1_000)
    pages = [P(f"Page {number}", "[[dog]] " * 50) for number in range(9)]
    records = observed(write(tmp_path / "dump.xml", dump(pages)))
    assert [record.units for record in records if type(record) is Step] == [3, 3, 3]


def test_the_source_is_described_by_its_head_and_its_name(tmp_path):
    source = write(tmp_path / "enwiki-20261101-pages-articles.xml.bz2", dump([DOG]))
    files = WikipediaBuilder().look(source)
    assert files.info.name == "Wikipedia"
    assert files.info.version == "enwiki 2026-11-01"
    assert files.info.date == "2026-11-01"
    assert files.info.licence == "CC BY-SA 4.0"
    assert files.info.url == "https://en.wikipedia.org/wiki/Main_Page"
    assert files.properties.url_pattern == "https://en.wikipedia.org/wiki/{key:_}"
    assert list(files.properties.identifiers) == ["wikidata", "page_id"]
    assert files.read == [source]
    assert files.properties is not None and files.properties.language == "en"
    zh = WikipediaBuilder().look(write(tmp_path / "x.xml", dump([DOG], "zh")))
    assert zh.properties is not None and zh.properties.language == "zh"
    assert (zh.info.version, zh.info.date) == ("zhwiki", "")
