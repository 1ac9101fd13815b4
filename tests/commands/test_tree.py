"""`kgkit tree`: what it says of a text, and its pictures."""

import json
from xml.etree import ElementTree

import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.errors import UsageError
from kgkit.trees import Branch, Flattener, Hook, Tree, cutter
from kgkit.trees.picture import picture
from tests.cli_helpers import run
from tests.small_kb import build

RECORDS = [
    Entity("tim", "Tim Cook", attributes={"born": 1960}), Entity("apple", "Apple"),
    Entity("cook", "cook"), Entity("job", "profession"),
    Entity("花", "花"), Entity("植物", "植物"), Alias("Tim Cook", "tim", 3), Alias("cook", "cook", 5),
    Alias("新西兰花", "花"), Triple("tim", "CEO", "apple"), Triple("cook", "is_a", "job"),
    Triple("花", "义原", "植物"),
]  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    build(folder, RECORDS, name="some").close()
    return folder


def told(home, *args):
    done = run("tree", *args, "--home", home)
    assert done.code == 0, done.err
    return done


def test_a_tree_is_told_token_by_token(home):
    lines = [line.split("\t") for line in told(home, "Tim Cook left", "--kb", "some").out.splitlines()]
    assert lines[0] == ["token", "position", "branch", "hook", "start", "end"]
    assert [line[0] for line in lines[1:]] == ["[CLS]", "Tim", "Cook", "CEO", "Apple", "left"]
    assert lines[4] == ["CEO", "3", "1", "1", "-1", "-1"] and lines[6] == ["left", "3", "0", "0", "9", "13"]
    [*tokens] = json.loads(told(home, "Tim Cook left", "--json").out)["tokens"]
    assert tokens[1] == {"token": "Tim", "position": 1, "branch": 0, "hook": 1, "start": 0, "end": 3}


def test_chinese_is_cut_into_characters_and_objects_alone_can_be_injected(home):
    found = json.loads(told(home, "我喜欢新西兰花", "--no-relations", "--json").out)["tokens"]
    assert "".join(one["token"] for one in found) == "[CLS]我喜欢新西兰花植物"
    few = json.loads(told(home, "我喜欢新西兰花", "--size", 10, "--json").out)["tokens"]
    assert "".join(one["token"] for one in few) == "[CLS]我喜欢新西兰花"


def test_a_text_is_cut_as_the_kb_cuts_its_surfaces(tmp_path):
    names = ["เชียงใหม่", "U.S. Navy"]
    facts = [Triple(name, "in", names[0]) for name in names]
    build(tmp_path, [*map(Entity, names), *map(Alias, names, names), *facts]).close()
    for text, name in (("เขาไปเชียงใหม่แล้ว", names[0]), ("the U.S. Navy left", names[1])):
        rows = json.loads(told(tmp_path, text, "--json").out)["tokens"]
        hooked = [row["token"] for row in rows if row["hook"] and not row["branch"]]
        assert "".join(hooked) == name.replace(" ", "")


def test_a_text_without_facts_says_so_and_is_shown_all_the_same(home, tmp_path):
    done = told(home, "It rained", "--kb", "some")
    assert "no fact found: some has none about a name in this text" in done.err
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["token", "[CLS]", "It", "rained"]
    drawn = told(home, "It rained", "--kb", "some", "--svg", tmp_path / "tree.svg")
    assert "no fact found" in drawn.err and "drawn: " in drawn.err
    assert "no fact" not in told(home, "It rained", "--kb", "some", "--quiet").err
    assert "no fact" not in told(home, "Tim Cook left", "--kb", "some").err


def test_facts_without_room_are_not_called_missing(home):
    done = told(home, "我喜欢新西兰花", "--size", 8)
    assert "no fact fits into 8 tokens beside the text: --size takes more" in done.err
    assert "no fact found" not in done.err


def test_values_are_injected_where_they_are_asked_for(home):
    found = json.loads(told(home, "Tim Cook left", "--attributes", "--json").out)["tokens"]
    assert " ".join(one["token"] for one in found) == "[CLS] Tim Cook CEO Apple born 1960 left"


def test_links_say_what_is_meant(home):
    args = ("the cook left", "--linker", "prior", "--json")
    assert [one["token"] for one in json.loads(told(home, *args).out)["tokens"]][3:5] == [
        "is_a",
        "profession",
    ]
    assert run("tree", *args, "--coherence", "graph", "--home", home).code == 0
    assert run("tree", "x", "--coherence", "graph", "--home", home).code == 2


def test_a_picture_has_every_token_twice_and_a_square_for_all_that_is_seen(home, tmp_path):
    place = tmp_path / "tree.svg"
    done = told(home, "Tim Cook <left>", "--svg", place)
    assert done.out == "" and f"drawn: {place}" in done.err
    drawn = ElementTree.parse(place)
    texts = [one.text for one in drawn.iter(f"{SVG}text")]
    assert texts.count("Apple") == 2 and "Tim Cook <left>" in texts
    squares = [one for one in drawn.iter(f"{SVG}rect") if one.get("width") == "14"]
    trunk, branch, mention = 6, 2, 2  # [CLS] Tim Cook < left >; CEO Apple
    assert len(squares) == trunk**2 + branch**2 + 2 * branch * mention
    told(home, "Tim Cook", "--svg", tmp_path / "tree.html")
    assert (tmp_path / "tree.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_picture_whose_name_says_another_format_is_refused(home, tmp_path):
    done = run("tree", "Tim Cook", "--svg", tmp_path / "tree.png", "--home", home)
    assert done.code == 2 and "tree.png" in done.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "odd", [*map(chr, range(32)), "\x7f", "\x85", "\ufffe", "\uffff", "\ud800", "\udfff"]
)
def test_a_picture_is_xml_whatever_the_text(odd):
    tree = Tree((f"a{odd} {odd} c",), (Hook(0, 0, 1, (Branch(("r", f"o{odd}"), "", ""),)),))
    flat = Flattener(cutter(r"\S+"))(tree)
    for suffix in (".svg", ".html"):
        page = picture(flat, suffix=suffix, title=f"t{odd}")
        # Of a page what stands behind its head: there <meta> has no end.
        drawn = ElementTree.fromstring(page.partition(b"</head>")[2].removesuffix(b"</html>\n") or page)
        shown = odd if odd in "\t\n\r\x7f\x85" else "\ufffd"
        assert any(one.text.rstrip() == f"t{shown}".rstrip() for one in drawn.iter(f"{SVG}text") if one.text)


def test_facts_stand_below_their_mention_and_none_covers_another():
    long, short, other = (Branch(words, "", "") for words in (("long", "fact"), ("x",), ("y",)))
    tree = Tree(("a b c",), (Hook(0, 0, 1, (long, short)), Hook(0, 2, 3, (other,))))
    drawn = ElementTree.fromstring(picture(Flattener(cutter(r"\S+"))(tree)))
    first = [
        one for one in next(iter(drawn.iter(f"{SVG}g"))).iter(f"{SVG}text") if one.get("font-size") is None
    ]
    where = {one.text: (float(one.get("x")), float(one.get("y"))) for one in first}
    assert where["long"][0] == where["x"][0] == where["a"][0]
    assert where["x"][1] > where["long"][1] > where["a"][1]
    assert where["b"][0] == where["y"][0] > where["fact"][0]


def test_what_cannot_be_drawn_is_told(tmp_path, home):
    with pytest.raises(UsageError, match=r"a tree cannot be \.png; it can be \.svg, \.html"):
        picture(Flattener(cutter())(Tree(("a",), ())), suffix=".png")
    assert run("tree", "x", "--svg", tmp_path / "no" / "x.svg", "--home", home).code == 3
    assert run("tree", "x", "--kb", "nope", "--home", home).code == 3
