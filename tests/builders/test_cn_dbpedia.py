"""CN-DBpedia: which records the lines of a dump make, and that it does not matter where a file is cut."""

import bz2
import gzip
import lzma
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import cn_dbpedia_dump as generator
from kb_builders import cn_dbpedia_files
from kb_builders.cn_dbpedia import CNDBpediaBuilder, without_bracket
from kgkit.building import Alias, Aliases, Attribute, Entity, Step, find_builder

TRIPLES = """\
李娜（中国女子网球运动员）	BaiduCARD	李娜，1982年生于<a>武汉</a>，网球运动员。|||她在2011年获得法网冠军。
李娜（中国女子网球运动员）	BaiduTAG	人物
李娜（中国女子网球运动员）	BaiduTAG	体育人物
李娜（中国女子网球运动员）	丈夫	<a>姜山</a>
李娜（中国女子网球运动员）	中文名	李娜
李娜（中国女子网球运动员）	出生地	武汉
李娜（中国女子网球运动员）	别名	娜姐、Nana Li
李娜（中国女子网球运动员）	身高	172
李娜（歌手）	BaiduTAG	人物
李娜（歌手）	代表作品	青藏高原
武汉	BaiduTAG	地点
武汉	所在国家	中国
"""
MENTIONS = "李娜\t李娜（中国女子网球运动员）\n李娜\t李娜（歌手）\n江城\t武汉\n李娜\t李娜（歌手）\n"


def records(source, part=None):
    builder = CNDBpediaBuilder()
    return [record for one in builder.parts(source) for record in builder.observe(source, part or one)]


@pytest.fixture
def read(tmp_path):
    """Returns the records of a text."""

    def found(text, name="baike_triples.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return records(path)

    return found


def of(kind, found):
    return [record for record in found if type(record) is kind]


def entity(found):
    (one,) = of(Entity, found)
    return one


def surfaces(found):
    return {alias.surface for alias in of(Alias, found)}


# -- entities -------------------------------------------------------------------------


def test_a_subject_is_an_entity_with_its_card_and_its_types(read):
    player, singer, city = of(Entity, read(TRIPLES))
    assert player == Entity(
        "李娜（中国女子网球运动员）",
        "李娜",
        "李娜，1982年生于武汉，网球运动员。\n她在2011年获得法网冠军。",
        "entity",
        types=("中国女子网球运动员", "人物", "体育人物"),
    )
    assert singer == Entity("李娜（歌手）", "李娜", "", "entity", types=("歌手", "人物"))
    assert city == Entity("武汉", "武汉", "", "entity", types=("地点",))


def test_entities_come_in_the_order_of_the_file(read):
    assert [one.key for one in of(Entity, read("b\tx\ty\na\tx\ty\nb\tz\ty\n"))] == ["b", "a", "b"]


@pytest.mark.parametrize(
    ("key", "label", "kind"),
    [
        ("李娜（歌手）", "李娜", "歌手"),
        ("李娜(歌手)", "李娜", "歌手"),
        ("李娜（歌手)", "李娜", "歌手"),
        ("Windows (操作系统)", "Windows", "操作系统"),
        ("三国（刘备（主公））", "三国", "刘备（主公）"),
        ("北京大学（深圳）（学校）", "北京大学（深圳）", "学校"),
        ("武汉", "武汉", ""),
        ("（二）", "（二）", ""),
        ("（）", "（）", ""),
        ("李娜（）", "李娜（）", ""),
        ("李娜（ ）", "李娜（ ）", ""),
        ("）", "）", ""),
        ("李娜歌手）", "李娜歌手）", ""),
        ("李娜（歌手", "李娜（歌手", ""),
        ("李娜（歌手）2", "李娜（歌手）2", ""),
        ("（一）李娜（歌手）", "（一）李娜", "歌手"),
        ("", "", ""),
    ],
)
def test_a_bracket_at_the_end_tells_apart_and_is_a_type(key, label, kind):
    assert without_bracket(key) == (label, kind)


@given(st.text("ab（(）) "))
def test_name_and_bracket_are_never_empty_and_make_up_the_key(key):
    label, inside = without_bracket(key)
    if inside:
        assert label
        assert _plain(f"{label}（{inside}）") == _plain(key)
    else:
        assert label == key


def _plain(key):
    return key.replace(" ", "").replace("（", "(").replace("）", ")")


def test_the_first_card_is_the_description(read):
    assert entity(read("a\tBaiduCARD\tfirst\na\tBaiduCARD\tsecond\n")).description == "first"


def test_the_names_of_the_web_service_mean_the_same_as_those_of_the_dump(read):
    found = entity(read("a\tDESC\ttext\na\tCATEGORY_ZH\ttag\n"))
    assert (found.description, found.types) == ("text", ("tag",))


# -- names ----------------------------------------------------------------------------


def test_an_entity_is_called_by_its_name_with_the_bracket_and_without(read):
    assert of(Alias, read("李娜（歌手）\tx\ty\n武汉\tx\ty\n")) == [
        Alias("李娜", "李娜（歌手）"),
        Alias("李娜（歌手）", "李娜（歌手）"),
        Alias("武汉", "武汉"),
    ]


def test_attributes_that_are_names_are_aliases_too_and_no_edges(read):
    found = read("番茄\t别名\t西红柿、洋柿子；番柿\n番茄\t外文名\tTomato, Love apple\n番茄\t中文名\t番茄\n")
    assert surfaces(found) == {"番茄", "西红柿", "洋柿子", "番柿", "Tomato, Love apple"}
    assert of(Attribute, found) == [
        Attribute("番茄", "别名", "西红柿、洋柿子；番柿"),
        Attribute("番茄", "外文名", "Tomato, Love apple"),
        Attribute("番茄", "中文名", "番茄"),
    ]


def test_a_title_is_one_name_whatever_stands_in_it(read):
    assert surfaces(read("红\t中文名\t红、黄；蓝\n")) == {"红", "红、黄；蓝"}


def test_a_sentence_is_no_name(read):
    assert surfaces(read(f"红\t别名\t{'很' * 65}\n")) == {"红"}
    assert surfaces(read(f"红\t别名\t{'很' * 64}\n")) == {"红", "很" * 64}


def test_a_mention_is_an_alias_counted_as_often_as_it_is_listed(read):
    (aliases,) = of(Aliases, read(MENTIONS, "m2e.txt"))
    assert aliases.counts == {
        ("李娜", "李娜（中国女子网球运动员）"): 1,
        ("李娜", "李娜（歌手）"): 2,
        ("江城", "武汉"): 1,
    }


# -- attributes -----------------------------------------------------------------------


def test_a_value_may_be_an_edge_and_a_link_is_its_text(read):
    assert of(Attribute, read(TRIPLES)) == [
        Attribute("李娜（中国女子网球运动员）", "丈夫", "姜山", True),
        Attribute("李娜（中国女子网球运动员）", "中文名", "李娜"),
        Attribute("李娜（中国女子网球运动员）", "出生地", "武汉", True),
        Attribute("李娜（中国女子网球运动员）", "别名", "娜姐、Nana Li"),
        Attribute("李娜（中国女子网球运动员）", "身高", "172", False),
        Attribute("李娜（歌手）", "代表作品", "青藏高原", True),
        Attribute("武汉", "所在国家", "中国", True),
    ]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("<a>武汉</a>", "武汉"),
        ('<a href="/view/1">武汉</a>', "武汉"),
        ("湖北<a>武汉</a>市", "湖北武汉市"),
        ("<a>短信（释义）</a>", "短信（释义）"),
        ("a<b", "a<b"),
        ("vector<int>", "vector<int>"),
        ("<abbr>", "<abbr>"),
        (" 武汉　", "武汉"),
    ],
)
def test_links_and_outer_space_are_no_part_of_a_value(read, value, kept):
    assert of(Attribute, read(f"a\tx\t{value}\n")) == [Attribute("a", "x", kept, True)]


def test_a_link_without_a_text_says_nothing(read):
    assert of(Attribute, read("a\tx\t<a></a>\na\ty\tz\n")) == [Attribute("a", "y", "z", True)]


def test_a_value_comes_as_often_as_it_is_written(read):
    assert len(of(Attribute, read("a\tx\ty\na\tx\ty\n"))) == 2


# -- files and parts ------------------------------------------------------------------


def test_lines_are_told_and_empty_ones_left_out(read):
    found = read(f"\n{TRIPLES}\n\n")
    assert sum(step.units for step in of(Step, found)) == 12
    assert [r for r in found if type(r) is not Step] == [r for r in read(TRIPLES) if type(r) is not Step]


def test_windows_line_ends_a_mark_and_a_missing_last_end_read_alike(read):
    plain = read(TRIPLES)
    assert read("\ufeff" + TRIPLES) == read(TRIPLES.rstrip("\n")) == plain
    assert read(TRIPLES.replace("\n", "\r\n") + "\r\n") == plain


def test_other_line_ends_of_unicode_end_no_line(read):
    assert of(Attribute, read("a\tx\t1\u2028\x0b\x85\f2\n"))[0].value == "1\u2028\x0b\x85\f2"


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_a_compressed_file_reads_alike_and_is_one_part(tmp_path, read, suffix, packed):
    path = tmp_path / f"dump.txt{suffix}"
    path.write_bytes(packed.compress(TRIPLES.encode()))
    assert CNDBpediaBuilder().parts(path) == [f"dump.txt{suffix}@all"]
    assert records(path) == read(TRIPLES)


def test_a_folder_has_triples_first_whatever_the_files_are_called(tmp_path):
    (tmp_path / "a.txt").write_text(MENTIONS, encoding="utf-8")
    (tmp_path / "b.spo").write_text(TRIPLES, encoding="utf-8")
    (tmp_path / "readme.md").write_text("Not a part of it.", encoding="utf-8")
    builder = CNDBpediaBuilder()
    assert [part.partition("@")[0] for part in builder.parts(tmp_path)] == ["b.spo", "a.txt"]
    assert builder.look(tmp_path).read == [tmp_path / "b.spo", tmp_path / "a.txt"]
    assert len(of(Entity, records(tmp_path))) == 3
    assert len(of(Aliases, records(tmp_path))) == 1


def test_a_file_of_k_bert_reads_as_triples(read):
    found = read("北京\t首都\t中国\n北京\t别名\t燕京\n中国\t位于\t亚洲\n", "CnDbpedia.spo")
    assert [one.key for one in of(Entity, found)] == ["北京", "中国"]
    assert Attribute("北京", "首都", "中国", True) in found
    assert Alias("燕京", "北京") in found


def merged(found):
    """What a build makes of the records: pieces put together, counts added, steps forgotten."""
    entities, counts = {}, {}
    for record in found:
        if isinstance(record, Entity):
            label, description, types = entities.setdefault(record.key, (record.label, "", ()))
            types += tuple(one for one in record.types if one not in types)
            entities[record.key] = label, description or record.description, types
        elif isinstance(record, Alias):
            pair = record.surface, record.key
            counts[pair] = counts.get(pair, 0) + record.count
        elif isinstance(record, Aliases):
            for pair, count in record.counts.items():
                counts[pair] = counts.get(pair, 0) + count
    return entities, counts, of(Attribute, found)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """A dump of 5,000 lines."""
    folder = tmp_path_factory.mktemp("dump")
    generator.write(folder, 5000)
    return folder


@pytest.mark.parametrize("size", [1, 100, 4_000, 77_777, 10**9])
def test_it_does_not_matter_where_a_file_is_cut(dump, size, monkeypatch):
    whole = merged(records(dump))
    monkeypatch.setattr(cn_dbpedia_files, "PART", size)
    parts = CNDBpediaBuilder().parts(dump)
    assert len(parts) > 2 if size < 10**5 else len(parts) == 2
    assert merged(records(dump)) == whole


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_it_does_not_matter_how_much_is_read_at_once(read, block, monkeypatch):
    whole = read(TRIPLES)
    monkeypatch.setattr(cn_dbpedia_files, "_BLOCK", block)
    assert read(TRIPLES) == whole


def test_parts_are_cut_between_subjects_and_cover_the_file(dump, monkeypatch):
    monkeypatch.setattr(cn_dbpedia_files, "PART", 3_000)
    builder = CNDBpediaBuilder()
    parts = [part for part in builder.parts(dump) if part.startswith("baike")]
    spans = [[*map(int, part.partition("@")[2].split("-"))] for part in parts]
    assert spans[0][0] == 0
    assert spans[-1][1] == (dump / "baike_triples.txt").stat().st_size
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    keys = [entity.key for part in parts for entity in of(Entity, [*builder.observe(dump, part)])]
    assert len(keys) == len(set(keys))


def test_a_subject_of_many_lines_is_one_part(tmp_path, monkeypatch):
    path = tmp_path / "dump.txt"
    path.write_text("a\tx\ty\n" * 3000 + "b\tx\ty\n" * 3, encoding="utf-8")
    monkeypatch.setattr(cn_dbpedia_files, "PART", 100)
    assert CNDBpediaBuilder().parts(path) == ["dump.txt@0-18000", "dump.txt@18000-18018"]
    assert len(of(Entity, records(path))) == 2


def test_a_step_comes_between_two_subjects(dump):
    open_keys = set()
    for record in records(dump):
        if isinstance(record, (Alias, Attribute)):
            open_keys.add(record.key)
        elif isinstance(record, Entity):
            open_keys.discard(record.key)
        elif isinstance(record, Step):
            assert not open_keys
            assert record.units <= 1000 + 600


def test_a_subject_without_end_is_told_in_pieces(read, monkeypatch):
    monkeypatch.setattr("kb_builders.cn_dbpedia.LONGEST_RUN", 1000)
    text = "a（b）\tBaiduCARD\ttext\n" + "".join(f"a（b）\tBaiduTAG\t{n}\n" for n in range(2500))
    found = read(text)
    assert [len(one.types) for one in of(Entity, found)] == [1000, 1001, 502]
    types = ("b", *map(str, range(2500)))
    assert merged(found) == (
        {"a（b）": ("a", "text", types)},
        {("a", "a（b）"): 0, ("a（b）", "a（b）"): 0},
        [],
    )


# -- the whole ------------------------------------------------------------------------


def test_the_builder_is_found_by_its_name():
    builder = find_builder("cn_dbpedia")
    assert (builder.name, builder.engine, builder.pieces, builder.unit) == (
        "cn_dbpedia",
        "local",
        True,
        "lines",
    )
    assert builder.properties.language == "zh"
    assert builder.properties.generator == "alias"
