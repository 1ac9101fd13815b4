"""CN-DBpedia as a knowledge base: what a build makes of a dump, whole, in parts, from several files."""

import pytest

import kgkit
from kb_builders import cn_dbpedia_files
from kb_builders.cn_dbpedia import CNDBpediaBuilder
from kgkit.errors import NotThere, SourceError
from kgkit.types import Triple

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

PLAYER, SINGER = "李娜（中国女子网球运动员）", "李娜（歌手）"
TRIPLES = f"""\
{PLAYER}	BaiduCARD	李娜，1982年生于<a>武汉</a>，网球运动员。|||她在2011年获得法网冠军。
{PLAYER}	BaiduTAG	人物
{PLAYER}	BaiduTAG	体育人物
{PLAYER}	丈夫	<a>姜山</a>
{PLAYER}	中文名	李娜
{PLAYER}	出生地	武汉
{PLAYER}	别名	娜姐、Nana Li
{PLAYER}	奖项	法网冠军
{PLAYER}	奖项	澳网冠军
{PLAYER}	身高	172
{SINGER}	BaiduTAG	人物
{SINGER}	代表作品	青藏高原
172	BaiduTAG	数字
姜山	BaiduTAG	人物
姜山	妻子	李娜
姜山	出生地	<a>武汉</a>
武汉	BaiduTAG	地点
武汉	中文名	武汉
武汉	又称	江城
"""
MENTIONS = f"李娜\t{PLAYER}\n网坛一姐\t{PLAYER}\n江城\t武汉\n哈尔滨\t哈尔滨（城市）\n"


@pytest.fixture
def dump(tmp_path):
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "baike_triples.txt").write_text(TRIPLES, encoding="utf-8")
    (folder / "m2e.txt").write_text(MENTIONS, encoding="utf-8")
    return folder


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def build(home):
    def built(source, name="cn", **options):
        return kgkit.build_kb(CNDBpediaBuilder(), source, name=name, home=home, **options)

    return built


@pytest.fixture
def kb(build, dump, home):
    build(dump)
    with kgkit.open_kb("cn", home=home) as opened:
        yield opened


def meanings(kb, surface):
    return {found.entity.key: round(found.prior, 3) for found in kb.decode(kb.candidates(surface))}


# -- what there is --------------------------------------------------------------------


def test_subjects_are_entities_in_the_order_of_the_dump(kb):
    assert [entity.key for entity in kb] == [PLAYER, SINGER, "172", "姜山", "武汉"]
    assert kb.manifest.counts.entities == {"entity": 5}


def test_an_entity_has_its_card_its_types_and_what_is_no_edge(kb):
    player = kb[PLAYER]
    assert player.label == "李娜"
    assert player.description == "李娜，1982年生于武汉，网球运动员。\n她在2011年获得法网冠军。"
    assert player.types == ("中国女子网球运动员", "人物", "体育人物")
    assert player.attributes == {
        "中文名": "李娜",
        "别名": "娜姐、Nana Li",
        "奖项": ["法网冠军", "澳网冠军"],
        "身高": "172",
    }


def test_a_value_that_is_a_key_is_an_edge_in_both_directions(kb):
    assert kb.relations == ("丈夫", "出生地")
    assert [one.key for one in kb.neighbors(PLAYER, "丈夫")] == ["姜山"]
    assert [one.key for one in kb.neighbors("武汉", "出生地", "in")] == [PLAYER, "姜山"]
    assert kb.path("武汉", "姜山") == [Triple("姜山", "出生地", "武汉")]


def test_a_value_that_is_a_name_of_several_stays_an_attribute(kb):
    assert kb["姜山"].attributes == {"妻子": "李娜"}


def test_a_name_is_no_edge_to_the_entity_itself(kb):
    assert kb["武汉"].attributes == {"中文名": "武汉", "又称": "江城"}


def test_a_number_is_no_edge_to_the_entity_that_is_called_so(kb):
    assert [*kb.neighbors("172", direction="in")] == []


def test_a_surface_means_all_of_its_name_and_most_often_what_is_listed(kb):
    assert meanings(kb, "李娜") == {PLAYER: 0.667, SINGER: 0.333}
    assert meanings(kb, PLAYER) == {PLAYER: 1}
    assert meanings(kb, "江城") == {"武汉": 1}
    assert meanings(kb, "网坛一姐") == meanings(kb, "娜姐") == meanings(kb, "nana li") == {PLAYER: 1}


def test_a_mention_of_no_entity_is_dropped_and_counted(kb):
    assert meanings(kb, "哈尔滨") == {}
    assert kb.manifest.counts.dropped == {"alias of no entity": 1}


# -- however it is read ---------------------------------------------------------------


def test_the_build_is_the_same_wherever_the_file_is_cut(build, dump, monkeypatch):
    whole = build(dump, "whole")
    monkeypatch.setattr(cn_dbpedia_files, "PART", 50)
    assert len(CNDBpediaBuilder().parts(dump)) > 4
    assert build(dump, "cut").manifest.tables == whole.manifest.tables


def test_several_sources_make_what_a_folder_makes(build, dump):
    files = [dump / "baike_triples.txt", dump / "m2e.txt"]
    assert build(files, "several").manifest.tables == build(dump, "folder").manifest.tables


def test_a_subject_that_comes_again_is_one_entity(build, home, tmp_path):
    path = tmp_path / "CnDbpedia.spo"
    lines = [
        "北京（首都） BaiduTAG 城市",
        "中国 首都 北京（首都）",
        "北京（首都） 面积 16410",
        "北京（首都） 国家 中国",
    ]
    path.write_text("\n".join(lines).replace(" ", "\t"), encoding="utf-8")
    build(path)
    with kgkit.open_kb("cn", home=home) as kb:
        city, country = kb
        assert (city.label, city.types, city.attributes) == ("北京", ("首都", "城市"), {"面积": "16410"})
        assert [one.key for one in kb.neighbors(city.key, "国家")] == [country.key]


def test_a_limit_counts_lines_and_cuts_no_entity(build, tmp_path, home):
    path = tmp_path / "dump.txt"
    path.write_text("".join(f"{n // 8}\tBaiduTAG\t{n % 8}\n" for n in range(9000)), encoding="utf-8")
    build(path, limit=2000)
    with kgkit.open_kb("cn", home=home) as kb:
        assert 250 <= len(kb) <= 255
        assert all(len(entity.types) == 8 for entity in kb)


def test_a_bad_line_publishes_nothing(build, dump, home):
    with (dump / "baike_triples.txt").open("a", encoding="utf-8") as file:
        file.write("武汉\t面积\n")
    with pytest.raises(SourceError, match="expected 3 tab-separated fields") as caught:
        build(dump)
    assert caught.value.line == 20
    with pytest.raises(NotThere):
        kgkit.open_kb("cn", home=home)
