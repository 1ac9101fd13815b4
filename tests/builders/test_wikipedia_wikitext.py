"""Links out of wikitext: which count, where they lead, what their aliases are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_builders.wikipedia.templates import Templates
from kb_builders.wikipedia.wikitext import cut, plain
from tests.wiki_dumps import aliases_of

# Where links stand.


@pytest.mark.parametrize(
    "text",
    [
        "The [[dog]] barks.",
        "== The [[dog]] ==",
        "* [[dog]]",
        "{|\n! [[dog]] !! x\n|-\n| y || z\n|}",
        "{| class=x\n|+ caption\n|-\n| style=y | [[dog]]\n|}",
        "<ref>See [[dog]].</ref>",
        '<ref name="a">{{cite book|title=[[dog]]}}</ref>',
        "{{Infobox|animal=[[dog]]|legs=4}}",
        "{{a|{{b|{{c|[[dog]]}}}}}}",
        "''[[dog]]'' and '''x'''",
        "<div style='x'><small>[[dog]]</small></div>",
        "[http://example.org a [[dog]] page]",
        "<gallery>\nFile:Dog.jpg|A [[dog]]\n</gallery>",
        "<imagemap>\nFile:Dog.jpg\nrect 0 0 9 9 [[dog]]\n</imagemap>",
        "<code>[[dog]]</code>",
        "<noinclude>[[dog]]</noinclude>",
        "<nowiki>unclosed [[dog]]",
        "<pre>unclosed [[dog]]",
        "[[dog]] <!-- a comment without end [[cat]]",
        "x [[ [[dog]] ]] y",
        "[[dog]]]",
        "[[[dog]]]",
    ],
)
def test_a_link_counts_wherever_it_is_read(text):
    assert aliases_of(text) == {"Dog": ["dog"]}


@pytest.mark.parametrize(
    "text",
    [
        "<!-- [[dog]] -->",
        "<!-- <!-- [[dog]] -->",
        "<nowiki>[[dog]]</nowiki>",
        "<NOWIKI >[[dog]]</nowiki >",
        "<pre>[[dog]]</pre>",
        "<pre class='x'>\n[[dog]]\n</pre>",
        '<syntaxhighlight lang="c">int a[[dog]];</syntaxhighlight>',
        "<source lang=lua>a[[dog]]</source>",
        "<math>a[[dog]]</math>",
        "<math chem>a[[dog]]</math>",
        "<timeline>text: [[dog]]</timeline>",
        "<includeonly>[[dog]]</includeonly>",
        "<score>\\relative { [[dog]] }</score>",
        "[[dog\n]]",
        "[[dog",
        "dog]]",
        "[dog]",
        "[[]]",
        "[[|dog]]",
        "[[{{PAGENAME}}]]",
        "[[dog{{x}}|cat]]",
        "[[<b>dog</b>]]",
        "[[dog<nowiki/>]]",
        "[[''dog'']]",
        "[[Dog''house|kennel]]",
        "&#91;&#91;dog]]",
        "[[http://dog.example dog]]",
        "[[#Roofs]]",
        "[[#Roofs|roofs]]",
        "[[fr:Chien]]",
        "[[:fr:Chien|chien]]",
        "[[wikt:dog|dog]]",
        "[[File:Dog.jpg]]",
        "[[File:Dog.jpg|thumb|A dog]]",
        "[[Image:Dog.jpg|thumb|A [http://x.org dog]]]",
        "[[Category:Dogs]]",
        "[[Category:Dogs|*]]",
        "[[:Category:Dogs|dogs]]",
        "[[User:Rex|Rex]]",
        "[[Special:Random]]",
        "<gallery>\nFile:Dog.jpg|A dog\n</gallery>",
    ],
)
def test_what_is_no_link_to_an_article_does_not_count(text):
    assert aliases_of(text) == {}


def test_what_stands_behind_something_cut_out_is_read():
    text = "<!-- [[a]] --><nowiki>[[b]]</nowiki><pre/>[[c]]<math>x</math>[[d]]<!-- [[e]]"
    assert aliases_of(text) == {"C": ["c"], "D": ["d"]}


def test_the_first_tag_that_is_closed_wins_over_one_within_it():
    assert aliases_of("<nowiki><!--</nowiki>[[a]]<!-- </nowiki> -->") == {"A": ["a"]}
    assert aliases_of("<!-- <nowiki> -->[[a]]<!-- </nowiki> -->") == {"A": ["a"]}
    assert aliases_of("<pre><nowiki></pre>[[a]]</nowiki>") == {"A": ["a"]}


# Links within links.


def test_links_in_a_caption_count_and_the_file_does_not():
    text = "[[File:Dog.jpg|thumb|200px|A [[dog]] and [[Cat|its [enemy]]] by [[fr:Chien]]]] [[horse]]"
    assert aliases_of(text) == {"Dog": ["dog"], "Cat": ["its [enemy]"], "Horse": ["horse"]}


def test_of_a_link_within_a_link_the_inner_one_counts():
    assert aliases_of("[[dog|a [[cat]] b]]") == {"Cat": ["cat"]}
    assert aliases_of("[[File:A.jpg|[[File:B.jpg|[[dog]]]]]]") == {"Dog": ["dog"]}


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("[[dog|a [b] c]]", "a [b] c"),
        ("[[dog|[b] c]]", "[b] c"),
        ("[[dog|a [b]]]", "a [b]"),
        ("[[dog|[b]]]", "[b]"),
        ("[[dog|a [b]] c", "a [b"),
        ("[[dog|a b] c]]", "a b] c"),
        ("[[dog|a|b]]", "a|b"),
        ("[[dog|a\nb]]", "a b"),
    ],
)
def test_single_brackets_and_bars_may_stand_in_a_text(text, alias):
    assert aliases_of(text) == {"Dog": [alias]}


# Aliases.


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("[[dog]]", "dog"),
        ("[[Dog]]", "Dog"),
        ("[[dog|puppy]]", "puppy"),
        ("[[dog| puppy ]]", "puppy"),
        ("[[dog|a  young\n dog]]", "a young dog"),
        ("[[dog|a&nbsp;dog]]", "a dog"),
        ("[[dog|a\u00a0dog]]", "a dog"),
        ("[[dog|dogs &amp; puppies]]", "dogs & puppies"),
        ("[[dog|''Canis'' '''major''']]", "Canis major"),
        ("[[dog|'''''Canis''''']]", "Canis"),
        ("[[dog|''unclosed]]", "unclosed"),
        ("[[dog|''''90s]]", "'90s"),
        ("[[dog|dog's]]", "dog's"),
        ("[[dog|<small>dog</small>]]", "dog"),
        ("[[dog|a<br/>dog]]", "a dog"),
        ("[[dog|a<br>dog]]", "a dog"),
        ("[[dog|dog<ref>[http://x.org y]</ref>]]", "dog"),
        ("[[dog|dog<ref name=x />]]", "dog"),
        ("[[dog|dog<!-- or [[cat]] -->]]", "dog"),
        ("[[dog|dog {{small|the best}}]]", "dog the best"),
        ("[[dog|''{{lang|fr|chien}}'']]", "chien"),
        ("[[dog|the {{nowrap|{{lang|fr|petit}} [sic]}} dog]]", "the petit [sic] dog"),
        ("[[dog|dog{{efn|Or a wolf.}}]]", "dog"),
        ("[[dog|''dog''{{'s}}]]", "dog's"),
        ("[[dog|<nowiki>d[o]g</nowiki>]]", "d[o]g"),
        ("[[dog|<nowiki>''dog''</nowiki>]]", "''dog''"),
        ("[[dog|<nowiki>{{</nowiki>]]", ""),
        ("[[dog|a < b]]", "a < b"),
        ("[[dog|[http://x.org dog]]]", "dog"),
        ("[[dog|C#]]", "C#"),
        ("[[dog|50%]]", "50%"),
        ("[[dog|a_b]]", "a_b"),
        ("[[dog_house]]", "dog house"),
        ("[[dog#Roofs|roof]]", "roof"),
        ("[[dog#Roofs]]", "dog"),
        ("[[:dog]]", "dog"),
        ("[[D%6Fg]]", "Dog"),
        ("[[D&#111;g]]", "Dog"),
        ("[[ dog ]]", "dog"),
        ("''[[dog]]''", "dog"),
        ("[[dog's]]", "dog's"),
        ("[[dog{{!}}puppy]]", "puppy"),
    ],
)
def test_an_alias_is_what_is_read(text, alias):
    (aliases,) = aliases_of(text).values()
    assert aliases == [alias] * bool(alias)


@pytest.mark.parametrize(
    "text",
    [
        "[[dog|{{flagicon|GB}}]]",
        "[[dog|''{{unknown|x}}'']]",
        "[[dog|a {{unknown|x}} dog]]",
        "[[dog|{{a|{{b}}}} dog]]",
        "[[dog|<math>x</math> dog]]",
        "[[dog|']]",
        "[[dog|–]]",
        "[[dog|''{{lang|fr|'}}'']]",
        "[[dog|<ref>x</ref>]]",
        "[[dog|<br>]]",
        "[[dog| ]]",
        "[[dog|&nbsp;]]",
        "[[dog|''''']]s",
        "[[dog|<!-- nothing -->{{a}}]]",
        "[[dog|a {{unclosed]]",
        "[[dog|a closed}} b]]",
        "[[dog|" + "x" * 201 + "]]",
        "[[dog|" + "{{a}}" * 1000 + "]]",
        "[[dog|" + "x " * 3000 + "]]",
    ],
)
def test_a_link_without_a_text_that_can_be_read_has_no_alias(text):
    assert aliases_of(text) == {"Dog": []}


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("[[Mercury (planet)|]]", "Mercury"),
        ("[[Boston, Massachusetts|]]", "Boston"),
        ("[[Mercury|]]", "Mercury"),
        ("[[:Mercury (planet)|]]", "Mercury"),
        ("[[mercury (planet)|]]s", "mercurys"),
    ],
)
def test_the_pipe_trick_leaves_out_the_bracket(text, alias):
    (aliases,) = aliases_of(text).values()
    assert aliases == [alias]


@pytest.mark.parametrize(
    ("text", "language", "alias"),
    [
        ("[[dog]]s", "en", "dogs"),
        ("[[dog]]ging around", "en", "dogging"),
        ("[[dog|puppy]]ish", "en", "puppyish"),
        ("[[dog]]S", "en", "dog"),
        ("[[dog]]-like", "en", "dog"),
        ("[[dog]]é", "en", "dog"),
        ("[[dog]]<nowiki/>s", "en", "dog"),
        ("[[dog]]<nowiki></nowiki>s", "en", "dog"),
        ("[[dog]]<!-- x -->s", "en", "dogs"),
        ("[[dog]]''s''", "en", "dog"),
        ("[[Hund]]ähnlich", "de", "Hundähnlich"),
        ("[[chien]]né", "fr", "chienné"),
        ("[[собака]]ми", "ru", "собаками"),
        ("[[狗]]们", "zh", "狗"),
        ("[[狗]]s", "zh", "狗"),
        ("[[犬]]たち", "ja", "犬"),
    ],
)
def test_letters_behind_a_link_belong_to_its_alias(text, language, alias):
    (aliases,) = aliases_of(text, language).values()
    assert aliases == [alias]


def test_of_several_scripts_the_first_is_read():
    assert aliases_of(
        "[[狗|-{犬}-]] [[猫|-{zh-hans:猫咪; zh-hant:貓咪}-]] [[马|-{zh-cn:小马}-儿]]", "zh"
    ) == {
        "狗": ["犬"],
        "猫": ["猫咪"],
        "马": ["小马儿"],
    }


def test_namespaces_of_other_languages():
    assert aliases_of(
        "[[Datei:A.jpg|mini|Ein [[Hund]]]] [[Kategorie:Hunde]] [[Bild:B.jpg|Ein [[Tier]]]]", "de"
    ) == {
        "Hund": ["Hund"],
        "Tier": ["Tier"],
    }
    assert aliases_of("[[文件:A.jpg|一只[[狗]]]] [[分类:犬]] [[Category:犬]] [[File:B.jpg]]", "zh") == {
        "狗": ["狗"]
    }


def test_links_are_counted():
    assert aliases_of("[[dog]] [[Dog]] [[dog]] [[dog|hound]] [[hound]]s") == {
        "Dog": ["Dog", "dog", "dog", "hound"],
        "Hound": ["hounds"],
    }


# The fast way and the slow one.

PIECES = [
    "[[", "]]", "[", "]", "|", "dog", "Dog", "a b", "  ", "''", "{{", "}}", "{{!}}", "#x", ":", "_",
    "&amp;", "\n",
    "<b>", "<nowiki>", "</nowiki>", "<!--", "-->", "<ref>", "</ref>", "é", "狗", "(x)", ", y", "s",
    "%20", ".", "File:",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_markup_leaks_into_aliases(text):
    for target, aliases in aliases_of(text).items():
        for alias in [target, *aliases]:
            assert alias.strip() == alias != ""
            assert not any(
                mark in alias for mark in ("[[", "]]", "{{", "}}", "<!--", "\n", "  ", "\x01", "|]]")
            )


@given(
    st.text("dDoOg ,.-'()é狗Жß", min_size=1, max_size=12),
    st.text("ab '.,-é狗", max_size=10),
    st.sampled_from(["", "s"]),
)
def test_common_links_come_to_the_same_as_rare_ones(title, text, trail):
    quick = f"[[{title}|{text}]]{trail}" if text else f"[[{title}]]{trail}"
    # A colon makes the title one that is looked at, a comment that is cut out a text that is.
    slow = f"[[:{title}|<b></b>{text}]]{trail}" if text else f"[[:{title}]]{trail}"
    assert aliases_of(quick) == aliases_of(slow)


# Plain text.


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a {{efn|c}} d", "a d"),
        ("a {{efn|{{c}}|{d}|e}} f", "a f"),
        ("a {{small|{{c.|5}} {d}}} f", "a c. 5 {d} f"),
        ("a {{b", "a {{b"),
        ("'''A''' ''b'' c's", "A b c's"),
        ("[http://x.org the site] and [//y.org]", "the site and"),
        ("x<sub>2</sub>", "x2"),
        ("&lt;b&gt; &amp;amp;", "<b> &amp;"),
        ("<ref>a</ref>b<ref name=c/>d<ref>e", "bde"),
    ],
)
def test_plain_text(text, read):
    assert plain(cut(text), Templates("en")) == read
