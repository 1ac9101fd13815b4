"""Templates that stand for words, and sentences with those that cannot be read."""

import re
from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_builders.wikipedia.clauses import without_holes
from kb_builders.wikipedia.lead import first_paragraph
from kb_builders.wikipedia.prose import prose
from kb_builders.wikipedia.template_tables import EVERYWHERE, FAMILIES, TABLES
from kb_builders.wikipedia.templates import _FUNCTIONS, HOLE, SOUND, Templates
from kb_builders.wikipedia.titles import Site, Titles
from kb_builders.wikipedia.wikitext import Links, cut, plain
from tests.wiki_dumps import aliases_of


def read(text, language="en"):
    """Return the text that is read where wikitext without links stands."""
    return plain(cut(text), Templates(language))


def lead(text, language="en", title="Dog"):
    """Return the first paragraph of a page."""
    return first_paragraph(cut(text), Titles(Site(language=language)).is_hidden, Templates(language), title)


# What is read.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{lang|fr|mot}}", "mot"),
        ("{{Lang | fr | mot }}", "mot"),
        ("{{lang\n| fr\n| mot\n}}", "mot"),
        ("{{ template:lang|fr|''mot''}}", "mot"),
        ("{{lang|2=mot|1=fr}}", "mot"),
        ("{{lang|fr|text=mot}}", "mot"),
        ("{{lang-de|Hund}}", "Hund"),
        ("{{langx|la|canis}}", "canis"),
        ("{{lang-zh|t=北京|p=Běijīng}}", "北京, Běijīng"),
        ("{{zh|s=汉字|t=漢字}}", "汉字"),
        ("{{transl|fa|Tehrān}}", "Tehrān"),
        ("{{transliteration|ar|ALA|alif}}", "alif"),
        ("{{nowrap|{{lang|it|due}} {{small|parole}}}}", "due parole"),
        ("{{No_wrap|a b}} {{NoWrap|c}} {{ABBR|d|e}}", "a b c d"),
        ("{{Nihongo|'''Sumo'''|相撲|sumō}}", "Sumo"),
        ("{{nihongo||相撲|sumō}}", "sumō"),
        ("{{nihongo3|wrestling|相撲|sumō}}", "sumō"),
        ("{{Korean|hangul=서울|rr=Seoul}}", "서울, Seoul"),
        ("{{ill|Town|de|Stadt}}", "Town"),
        ("{{ill|Town|de|Stadt|lt=the town}}", "the town"),
        ("{{Interlanguage link|Town|fr|Ville}}", "Town"),
        ("{{w|word}} {{w|word|words}}", "word words"),
        ("{{abbr|approx.|approximately}}", "approx."),
        ("{{sc|bc}} x{{sub|2}}{{sup|3}} {{mvar|n}} {{nobold|(a)}}", "bc x23 n (a)"),
        ("{{math|''z'' {{=}} 1}}", "z = 1"),
        ("''Eagle''{{'s}} wing", "Eagle's wing"),
        ("1778{{ndash}}83{{snd}}a{{nbsp}}b", "1778–83 – a b"),
        ("{{sic|teh}} {{sic}}", "teh"),
        ("{{circa|1900}}, {{c.|1900|1950}}, {{fl.|5}}", "c. 1900, c. 1900 – c. 1950, fl. 5"),
        ("{{frac|1|2}} {{frac|3|1|4}} {{sfrac|7}}", "1/2 3 1/4 1/7"),
        ("{{val|12345.6|u=km}} {{val|1.5|e=9|ul=m|up=s}}", "12,345.6 km 1.5×10^9 m/s"),
        ("{{formatnum:1234567}} {{FORMATNUM|2000}}", "1,234,567 2,000"),
        ("{{US$|5 million}} {{£|3}}", "US$5 million £3"),
        ("{{flag|France}} {{flagicon|FRA}}", "France"),
        ("{{visible anchor|word}} {{anchor|word}}", "word"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{lit|x}} a{{br}}b {{radic|2}} 5{{e|9}}", "lit. 'x' a b √2 5×10^9"),
        ("F{{music|sharp}}", "F♯"),
        ("{{OldStyleDate|2 May|1905|20 April}}", "2 May 1905"),
        ("a{{cn|date=May 2010}}{{sfn|A|1990|p=5}}{{efn|b}}{{rp|5}}", "a"),
        ("{{Cite book|title=x}}", ""),
        ("{{lang|fr|[[a|b]]}}", "[[a|b]]"),
        ("{{lang|fr|<nowiki>|}}</nowiki>}}", "|}}"),
    ],
)
def test_templates_that_stand_for_words(text, words):
    assert read(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{convert|1300|mi|km}}", "1,300 mi"),
        ("{{cvt|10|km2|sqmi|abbr=on}}", "10 km²"),
        ("{{convert|10|-|20|km}}", "10–20 km"),
        ("{{Convert|3|by|4|ft|m|0}}", "3 by 4 ft"),
        ("{{convert|5|ft|10|in|cm}}", "5 ft 10 in"),
        ("{{convert|1+1/2|mi}}", "1 1/2 mi"),
        ("{{convert|2.5|e6acre|km2}}", "2.5 million acres"),
        ("{{convert|-40|C|F}}", "-40°C"),
        ("{{convert|118.3|x|20.5|m|ft}}", "118.3 × 20.5 m"),
        ("{{convert| 1,300 | sqmi }}", "1,300 sq mi"),
        ("{{convert|{{x}}|mi}}", HOLE),
        ("{{convert}}", HOLE),
        ("{{convert|about|mi}}", HOLE),
    ],
)
def test_a_quantity_is_read_as_it_is_given(text, words):
    assert read(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{SMS|Emden|1908|6}}", "SMS Emden"),
        ("{{USS|Cole|DDG-67}}", "USS Cole (DDG-67)"),
        ("{{HMS|Victory||2}}", "Victory"),
        ("{{USS|Cole|DDG-67|1}}", "DDG-67"),
        ("{{USS|Cole|DDG-67|3}}", "Cole (DDG-67)"),
        ("{{HMS|Hood}}", "HMS Hood"),
        ("{{ship|Japanese battleship|Yamato||6}}", "Japanese battleship Yamato"),
        ("{{ship||Bounty}}", "Bounty"),
        ("{{sclass|Iowa|battleship}} {{sclass|Iowa|battleship|1}}", "Iowa-class battleship Iowa class"),
        ("{{USS}}", HOLE),
    ],
)
def test_names_of_ships(text, words):
    assert read(text) == words


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("{{birth date|1950|1|2}}", "en", "January 2, 1950"),
        ("{{birth date and age|df=yes|1950|01|02}}", "en", "2 January 1950"),
        ("{{death date and age|2000|5|6|1950|1|2}}", "en", "May 6, 2000"),
        ("{{start date|1999|12}} {{start date|1999}}", "en", "December 1999 1999"),
        ("{{birth-date|2 January 1950}}", "en", "2 January 1950"),
        ("{{birth date|1950|13|2}}", "en", "2 1950"),
        ("{{As of|2015|6|30}} {{as of|2014|lc=y}}", "en", "As of 30 June 2015 as of 2014"),
        ("{{as of|2014|alt=in 2014}} {{As of|May 2014|since=y}}", "en", "in 2014 Since May 2014"),
        ("{{date|3|mai|1990}} {{date-|1|5|1990}}", "fr", "3 mai 1990 1er mai 1990"),
        ("{{Date de naissance|mai|1990}}", "fr", "mai 1990"),
        ("{{JULGREGDATUM|10|5|1700|Link=\"true\"}}", "de", "10. Mai 1700"),
        ("{{fecha|3|5|1990}}", "es", "3 de mayo de 1990"),
        ("{{bd|1893年|12月26日|1976年|9月9日|catIdx=M}}", "zh", "1893年12月26日－1976年9月9日"),
        ("{{bd|1950年||}}", "zh", "1950年"),
        ("{{生年月日と年齢|1950|1|2}}", "ja", "1950年1月2日"),
    ],
)  # fmt: skip
def test_dates(text, language, words):
    assert read(text, language).replace(SOUND, "") == words


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("{{enS|dog}} {{FrS|chien}} {{arS|كلب}}", "de", "dog chien كلب"),
        ("{{\"|Hund}} {{nnbsp}}{{§|1|BGB}} {{Bruch|1|2}}", "de", "„Hund“ § 1 1/2"),
        ("{{Audio|Hund.ogg|Hund}} {{FN|1}} {{Höhe|1200|DE-NN|link=true}}", "de", "Hund 1200 m"),
        ("{{formatnum:12345.6}} {{convert|118,3|m|ft}}", "de", "12.345,6 118,3 m"),
        ("{{Audio|Hund.ogg|Aussprache}}", "de", ""),
        ("{{unité|1200|km|2}} {{unité|5|m||s|-1}}", "fr", "1 200 km2 5 m⋅s-1"),
        ("{{nombre|12000|habitants}} {{heure|10|30}}", "fr", "12 000 habitants 10 h 30"),
        ("{{3e}} {{2e|fois}} {{formule chimique|H|2|O}} {{unité|1.5|km}}", "fr", "3e 2e fois H2O 1,5 km"),
        ("{{s|XIX}} {{s-|I}} {{-s|V}}", "fr", "XIXe siècle Ier siècle Ve siècle av. J.-C."),
        ("{{sp|XIX|e|au|XX|e}} {{XXe siècle}}", "fr", "XIXe au XXe siècle XXe siècle"),
        ("{{sp-|I|et le|IV}} {{-sp|IX|e|-|VII|e|s}}", "fr",
         "Ier et le IVe siècle IXe - VIIe siècles av. J.-C."),
        ("{{unité|1234567,89}} {{unité|1.2|e=15}} {{tmp|95|°C}}", "fr", "1 234 567,89 1,2×10^15 95 °C"),
        ("{{Unité|10000|J||kg||m|-2}}", "fr", "10 000 J⋅kg⋅m-2"),
        ("{{nombre|3620|hab. par km|2}}", "fr", "3 620 hab. par km2"),
        ("la {{III}}{{e}} République & {{Cie}}", "fr", "la IIIe République & Cie"),
        ("{{FRA-d}} {{-s2|V|e|VI|e}} {{heure|22|55|00}}", "fr",
         "Ve et VIe siècles av. J.-C. 22 h 55 min 00 s"),
        ("{{lien|langue=en|trad=Dog|fr=Chien|texte=le chien}}", "fr", "le chien"),
        ("{{Lien|Chien|en|Dog}} {{lien|trad=Dog|fr=Chien|lang=en}}", "fr", "Chien Chien"),
        ("{{1er}} {{n°|5}} {{av JC}} {{Mme|Curie}} {{langue|en|dog}} {{incise|a}}", "fr",
         "1er no 5 av. J.-C. Mme Curie dog — a —"),
        ("{{citation étrangère|en|dog}} {{référence nécessaire|un mot}}{{refnec}}", "fr", "« dog » un mot"),
        ("{{link-en|狗|Dog}} {{le|狗|Dog|小狗}}", "zh", "狗 小狗"),
        ("{{tsl|en|Dog|狗}} {{translink|en|Dog|狗|小狗}}", "zh", "狗 小狗"),
        ("{{lang|en|dog}} {{lj|犬}} {{internal link helper/en|狗|Dog}}", "zh", "dog 犬 狗"),
        ("{{illm|WD=Q144|狗|en|Dog}} {{ruby|漢|hàn}}", "zh", "狗 漢"),
        ("-{zh-hans:计算机; zh-hant:電腦}- -{zh:狗}- -{T|zh-hans:a;zh-hant:b}-c", "zh", "计算机 狗 c"),
        ("{{読み仮名|'''東京'''|とうきょう}} {{仮リンク|犬|en|Dog|label=いぬ}}", "ja",
         "東京（とうきょう） いぬ"),
        ("{{lang-en|dog}} {{нп5|Собака|собаки|en|Dog}} {{число|12000|км}}", "ru", "dog собаки 12 000 км"),
        ("{{OldStyleDate|9 мая|1870|28 апреля}}", "ru", "28 апреля (9 мая) 1870"),
        ("{{unidad|1200|km}} {{siglo|XIX}}", "es", "1.200 km siglo XIX"),
        ("{{M|1200|u=km}} {{a.C.}}", "it", "1.200 km a.C."),
        ("{{llang|en|dog}} {{한자|개|犬}}", "ko", "dog 개(犬)"),
        ("{{lang|fr|chien}} {{nowrap|a b}} {{cn}}", "sv", "chien a b"),
    ],
)  # fmt: skip
def test_templates_of_other_wikipedias(text, language, words):
    assert read(text, language).replace(SOUND, "") == words


@pytest.mark.parametrize(
    "text",
    ["{{}}", "{{|}}", "{{unknown}}", "{{PAGENAME}}", "{{#if:a|b}}", "{{lang|fr}}", "{{lang}}", "{{nowrap| }}",
     "{{small|\n* a\n* b}}", "{{transl|fa|''{{x}}''}}"],
)  # fmt: skip
def test_what_cannot_be_read_is_marked(text):
    assert read(text) == HOLE


def test_links_keep_their_bars_within_templates():
    assert lead("'''Rex''' is {{nowrap|a [[Dog (animal)|dog]] of {{lang|fr|[[France|la France]]}}}}.") == (
        "Rex is a dog of la France."
    )


def test_link_texts_within_templates_and_templates_within_link_texts():
    assert aliases_of("{{nowrap|[[dog|{{lang|fr|chien}}]]}} [[Cat|''{{transl|ar|ALA|qiṭṭ}}'']]") == {
        "Dog": ["chien"],
        "Cat": ["qiṭṭ"],
    }
    assert aliases_of("[[cow|the {{nowrap|big}} cow]]s [[{{lang|en|ox}}]]") == {"Cow": ["the big cows"]}
    assert aliases_of("[[Hund|{{enS|dog}}]]", "de") == {"Hund": ["dog"]}


def test_words_of_templates_are_part_of_the_prose():
    site = Site(language="en")
    text = "The {{nobr|[[Rio|{{lang|pt|o Rio}}]]}}, ''{{USS|Cole}}''{{'s}}{{x}} {{cvt|5|km}}.\n== A =={{x}}"
    read = prose(cut(text), Links(site), Titles(site).is_hidden, "T")
    assert " ".join(read.text.split()) == "The o Rio, USS Cole's 5 km."
    assert [read.text[start:end] for start, end in read.links] == ["o Rio"]


# The tables.


def test_every_name_stands_once_in_a_table_and_every_argument_once_in_a_pattern():
    for table in (EVERYWHERE, *TABLES.values()):
        names = Counter(name[:1].lower() + name[1:] for names in table.values() for name in names.split("|"))
        assert [name for name, count in names.items() if count > 1 or not name] == []
        for pattern in table:
            for alternative in pattern.split("‖"):
                fields = [
                    name for group in re.findall(r"\{([^}:]*)", alternative) for name in group.split("|")
                ]
                assert len(fields) == len(set(fields)), pattern


def test_every_function_of_a_table_is_known():
    patterns = [*EVERYWHERE, *chain(*TABLES.values()), *(pattern for *_, pattern in FAMILIES)]
    named = {pattern for pattern in patterns if len(pattern) > 1 and pattern.startswith("=")}
    assert named == set(_FUNCTIONS)


# Sentences with holes.


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Rome ({{x}}) is a town.", "Rome is a town."),
        ("Rome ({{x}}; 753 BC) is a town.", "Rome (753 BC) is a town."),
        ("Rome (pronounced {{IPA|a}} or {{IPA|b}}, old {{x}}) is a town.", "Rome is a town."),
        ("Rome ([ˈroːma] {{IPA|a}}), {{x}}, is a town.", "Rome is a town."),
        (
            "Rome ({{IPAc-en|r}}; Italian: {{lang|it|Roma}} {{IPA-it|a}}) is a town.",
            "Rome (Italian: Roma) is a town.",
        ),
        (
            "Rome (plural ''Romes'' {{respell|ROHMZ}}, locally {{IPA|a}}) is a town.",
            "Rome (plural Romes) is a town.",
        ),
        ("Rome (“Roma” {{IPA|a}}, old) is a town.", "Rome (“Roma”, old) is a town."),
        (
            "Rome ({{it}} ''Roma'', {{De}} ''Rom''; {{x}} old, on {{x}}) is a town.",
            "Rome (Roma, Rom) is a town.",
        ),
        ("<center>{{x}}</center>\n\nRome is a town.", "Rome is a town."),
        ("Rome, pronounced {{IPA|a}}, is a town.", "Rome is a town."),
        (
            "Rome is a town of c. 2 people in St. Peter and {{x}}. It is old.",
            "Rome is a town of c. 2 people in St. Peter. It is old.",
        ),
        (
            "Rome lies {{x}} from the sea. In 2010, it had {{x}} people.",
            "Rome lies from the sea.",
        ),
        ("Rome is a part of {{x}}, in Italy. It had {{x}} in 2010.", "Rome is a part, in Italy."),
        (
            "Rome is a town at {{coord|1|2}}. It is {{coord|1|2|display=title}} big.",
            "Rome is a town. It is big.",
        ),
        ("Rome is a town. At {{x|5}}, it is big.", "Rome is a town. It is big."),
        ("With an area of {{x|5}}, Rome is big.", "Rome is big."),
        ("Rome, founded {{x}}, is a town.", "Rome is a town."),
        (
            "Rome, founded in {{x}} by Romulus, has walls, gates and towers.",
            "Rome has walls, gates and towers.",
        ),
        ("Rome is a town, of {{x}} people, in Italy.", "Rome is a town, in Italy."),
        ("Rome has walls, {{x}}, gates and towers.", "Rome has walls, gates and towers."),
        ("Rome lies near {{x}} and {{x}}.", "Rome lies."),
        ("Rome is a town of the {{x}}.", "Rome is a town."),
        ("Rome is a {{x}} town.", "Rome is a town."),
        ("Rome is a town. Its area is {{x}}. It is old.", "Rome is a town. It is old."),
        ("Rome is a town. {{x}}It is old.", "Rome is a town. It is old."),
        ("Rome is a town. {{x}} It is old {{x}}.", "Rome is a town. It is old."),
        ("Rome is a town.{{x}} It is old{{x}}, and{{x}} big.{{x}}", "Rome is a town. It is old, and big."),
        ("''{{x}}'' is a town.", "Dog is a town."),
        ("{{x|Rome}} is a town.", "Dog is a town."),
        ("{{x|Rome}} (old) is a town.", "Dog (old) is a town."),
        ("{{x}} '''Rome''' is a town. It is old.", "Rome is a town. It is old."),
        ("{{x}} {{x}} '''Rome''', {{x}}, is a town. It is old.", "Rome is a town. It is old."),
        ("{{x}}'''Rome''' is a town.\n{{x}}\nIt is old.", "Rome is a town."),
        ('Rome means "{{x}}".', "Rome means."),
        ("Rome is a town where <math>a</math>, the area, is big.", "Rome is a town, the area, is big."),
        ("Rome is the study of <math>a</math> and its roots.", "Rome is the study."),
        ("Rome is known for {{x}} or a gate, and is old.", "Rome is known, and is old."),
        ("Rome lies on {{x}} and is old.", "Rome lies and is old."),
        ("Rome is a town {{x}} and a port.", "Rome is a town and a port."),
        ("The Rome is the {{x}} of its kind.", ""),
        ("The Rome is a {{x}} and a town. It is old.", "It is old."),
        ("Rome is the {{x}} of its kind.\n\nIt is a town.", "It is a town."),
        ("Ann Lee (born May 2, 1950) is a singer from {{x}}.", "Ann Lee (born May 2, 1950) is a singer."),
        ("Rome (pop. 5,000; area 3 (or 4), old) has {{x}} gates. It is old.", "It is old."),
        (
            "Rome, a town [sic: a city] (see Gate. It is old), has walls near {{x}}.",
            "Rome, a town [sic: a city] (see Gate. It is old), has walls.",
        ),
    ],
)
def test_a_template_that_cannot_be_read_takes_its_clause_along(text, read):
    assert lead(text) == read


@pytest.mark.parametrize(
    ("text", "language", "read"),
    [
        ("Rom ({{x}}; 753 v. Chr.) ist eine Stadt. Mit {{x}} Einwohnern ist sie groß.", "de",
         "Rom (753 v. Chr.) ist eine Stadt. Mit Einwohnern ist sie groß."),
        ("Ann Lee (née le 1er mai 1950, à Rome) est chanteuse au {{x}}.", "fr",
         "Ann Lee (née le 1er mai 1950, à Rome) est chanteuse."),
        ("Rom ist die Lehre von <math>a</math> und ihren Wurzeln.", "de", "Rom ist die Lehre."),
        ("羅馬（前753年，義大利。歐洲）是城市，位於{{x}}。", "zh", "羅馬（前753年，義大利。歐洲）是城市。"),
        ("Rom ist eine Stadt. Sie hat {{EWZ|1}} Einwohner (Stand: {{EWD|1}}).", "de", "Rom ist eine Stadt."),
        ("Rom, gegründet {{x}}, ist eine Stadt. Die Fläche beträgt {{x}}.", "de", "Rom ist eine Stadt."),
        ("Rome, fondée en {{x}}, est une ville du {{x}}.", "fr", "Rome est une ville."),
        ("Rome est une ville. En {{x}}, elle est grande.", "fr", "Rome est une ville. Elle est grande."),
        ("羅馬（{{x}}，前753年）是城市，面積{{x}}，人口眾多。", "zh", "羅馬（前753年）是城市，人口眾多。"),
        ("羅馬是城市。在{{x}}，人口眾多。位於{{x}}。", "zh", "羅馬是城市。人口眾多。"),
        ("{{x}}是城市。", "zh", "狗是城市。"),
        ("In Italie, Rome e je une citât {{x}}, fondade {{x}}.", "fur", "In Italie, Rome e je une citât."),
        ("روما ({{IPA|x}}، {{lang-it|Roma}}) مدينة، {{x}}، كبيرة.", "ar", "روما (Roma) مدينة، كبيرة."),
        ("ローマ（{{x}}）は{{x}}の都市である。", "ja", "ローマはの都市である。"),
    ],
)  # fmt: skip
def test_clauses_of_other_languages(text, language, read):
    assert lead(text, language, "狗" if language == "zh" else "Dog") == read


WORDS = [
    "Rome", "is", "a town", "of", "in Italy,", "and", "“old”", "founded by", "walls;", "''big''", "(old)",
    "{{x}}", "{{x}},", "''{{x}}''", "({{x}})", "({{x}}; old)", "({{IPA|x}}, {{lang|it|Roma}})", "“{{x}}”",
    "{{cn}}",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), st.sampled_from(["en", "de", "fr", "zh"]))
def test_no_stray_mark_is_left(text, language):
    found = lead(f"{text}.", language)
    assert not re.search(r"\([ ,;]|[ ,;]\)|[,;] ?[,;.]|\(\)|''|“”|^[,;]|  | [,;.]", found), found


def test_marks_that_are_meant_stay():
    text = "The .NET framework: \"a, b; c\" (e.g. 1,300), etc., ends... Or (so: it) 'goes' – (x)?"
    assert lead(text) == text


def test_links_to_other_projects_are_read_and_those_to_other_languages_are_not():
    assert lead("A dog is [[wikt:tame|tame]] [[:fr:Chien|here]].[[fr:Chien]]") == "A dog is tame here."


# Bad input.


HOSTILE = {
    "unclosed": "{{lang|fr|" * 20_000,
    "unclosed braces": "{" * 100_000,
    "only closed": "}}" * 50_000,
    "nested": "{{lang|fr|" * 10_000 + "a" + "}}" * 10_000,
    "nested and unclosed": "{{nowrap|" * 10_000 + "a" + "}}" * 5_000,
    "a large argument": "{{lang|fr|" + "a b [[c|d]] " * 100_000 + "}}",
    "many arguments": "{{lang|fr" + "|a=b" * 200_000 + "|c}}",
    "many bars in links": "{{linktext" + "|[[a" * 100_000 + "}}",
    "white space": "{{lang|fr|" + " " * 500_000 + "=" + "}}",
    "digits": "{{convert|" + "1" * 200_000 + "|km}} {{formatnum:" + "9" * 200_000 + "}}",
    "dates": "{{birth date|" + "9" * 5_000 + "|" + "9" * 5_000 + "|" + "9" * 5_000 + "}}",
    "powers": "{{convert|1e999|km}} {{convert|" + "1|-|" * 50_000 + "2|km}} {{val|e=" + "9" * 9_000 + "}}",
    "holes": "a " + "{{x}}, " * 50_000,
    "holes and words": "the {{x}} of " * 20_000,
    "holes in a long clause": "a" * 30_000 + " the {{x}}" * 5_000,
    "letters and a sound": ("a" * 3_000 + " ") * 10 + "({{IPA|x}})",
    "brackets": "(" * 20_000 + "{{x}}" + ")" * 20_000,
    "variants": "{{lang|zh|" + "-{" * 50_000 + "}}",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("language", ["en", "fr", "zh"])
def test_hostile_text_is_read_as_far_as_it_goes(text, language):
    assert len(lead(text, language)) <= 1_000
    assert len(read(text, language)) <= len(text)
    aliases_of(f"[[dog|{text[:1_900]}]]", language)


PIECES = [
    "{{", "}}", "|", "lang", "fr", "=", "convert", "5", "km", "[[", "]]", "x", " ", "''", "(", ")", ",", ".",
    "\n", "-{", "}-", "is", "the", "USS", HOLE,
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_whatever_is_written_is_read(text):
    found = lead(text)
    assert HOLE not in found and "\x01" not in found and "  " not in found
    assert HOLE not in without_holes(text, "zh", "")
