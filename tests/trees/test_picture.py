"""Pictures of sentence trees: what is drawn is what the tree and its matrix say."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given

from kgkit.errors import UsageError
from kgkit.trees import Branch, Flattener, Frame, Hook, Tree, cutter, visible
from kgkit.trees.picture import picture
from tests.doc_pages import ROOT
from tests.trees.test_trees import trees

WORDS = cutter(r"\S+")
SVG = "{http://www.w3.org/2000/svg}"
FACTS = (Branch(("CEO", "Apple"), "kb", "tim"), Branch(("born", "in", "Mobile"), "kb", "tim"))
TREE = Tree(("Tim Cook visits Beijing",), (
    Hook(0, 0, 8, FACTS), Hook(0, 16, 23, (Branch(("is_a", "City"), "kb", "beijing"),)),
))  # fmt: skip


def flat(tree, **frame):
    return Flattener(WORDS, Frame(**frame))(tree)


def drawing(tree, **how):
    """Return the words of the tree, (text, x, y, colour, bold), and the squares of the matrix by place."""
    root = ElementTree.fromstring(picture(tree, **how))
    above, below = root.findall(f"{SVG}g")
    words = [
        (text.text, float(text.get("x")), float(text.get("y")), text.get("fill"), text.get("font-weight"))
        for text in above.findall(f"{SVG}text")
        if text.get("font-size") is None
    ]
    squares = {
        (int(square.get("y")) // 16, int(square.get("x")) // 16): square.get("fill")
        for square in below.findall(f"{SVG}rect")
        if square.get("x") is not None
    }
    return words, squares


def test_the_text_stands_in_the_first_row_and_each_fact_in_one_below():
    tree = flat(TREE)
    words, _ = drawing(tree)
    assert [word[0] for word in words] == [str(token) for token in tree.tokens]
    rows = {branch: {y for (_, _, y, _, _), own in zip(words, tree.branches, strict=True) if own == branch}
            for branch in range(4)}  # fmt: skip
    assert rows == {0: {0.0}, 1: {26.0}, 2: {52.0}, 3: {26.0}}
    below = {x for (_, x, _, _, _), own in zip(words, tree.branches, strict=True) if own}
    assert min(below) == words[0][1]  # a fact begins where its mention does


def test_mentions_with_facts_are_bold_and_facts_have_colours_of_their_own():
    tree = flat(TREE)
    words, _ = drawing(tree)
    assert [word[0] for word in words if word[4]] == ["Tim", "Cook", "Beijing"]
    colours = {int(branch): word[3] for word, branch in zip(words, tree.branches, strict=True)}
    assert len({*colours.values()}) == 4


def test_soft_positions_stand_beside_their_tokens():
    tree = flat(TREE)
    root = ElementTree.fromstring(picture(tree))
    numbers = [int(text.text) for text in root.iter(f"{SVG}text") if text.get("font-size") == "9"]
    assert numbers == tree.positions.tolist()


@given(trees())
def test_the_squares_are_the_visible_matrix_in_the_colour_of_the_fact(tree):
    tree = flat(tree, before=("[CLS]",), after=("[SEP]",))
    words, squares = drawing(tree)
    assert {*squares} == {*map(tuple, np.argwhere(visible(tree.branches, tree.hooks)).tolist())}
    for (row, column), colour in squares.items():
        deeper = max((row, column), key=lambda index: tree.branches[index])
        assert colour == words[deeper][3]


@given(trees())
def test_words_of_one_row_do_not_cover_each_other(tree):
    tree = flat(tree)
    words, _ = drawing(tree)
    for row in {word[2] for word in words}:
        own = sorted((x, x + 8 * len(text or "")) for text, x, y, _, _ in words if y == row)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(own))


def test_what_xml_means_something_by_is_text():
    tree = flat(Tree(('<a> & "b"',), (Hook(0, 0, 3, (Branch(("<&>",), "kb", "a"),)),)))
    words, _ = drawing(tree, title="<title> & more")
    assert [word[0] for word in words] == ["<a>", "<&>", "&", '"b"']
    assert "&lt;title&gt; &amp; more" in picture(tree, title="<title> & more").decode()


def test_wide_letters_take_more_room_than_narrow_ones():
    def begins(text):
        return [word[1] for word in drawing(flat(Tree((text,), ())))[0]]

    assert begins("苹果 a")[1] > begins("ab a")[1]


def test_more_facts_than_colours_are_drawn_all_the_same():
    branches = tuple(Branch((f"r{number}",), "kb", "a") for number in range(8))
    words, squares = drawing(flat(Tree(("a b",), (Hook(0, 0, 1, branches),))))
    assert len(words) == 10 and words[1][3] == words[7][3] != words[2][3]
    assert (1, 7) not in squares  # of one colour, and yet they do not see each other


def test_equal_trees_give_equal_files_and_no_other_format_is_drawn():
    assert picture(flat(TREE)) == picture(flat(TREE))
    page = picture(flat(TREE), suffix=".html", title="Tim").decode()
    assert page.startswith("<!DOCTYPE html>") and "<script" not in page and "http://" not in page.replace(
        "http://www.w3.org/2000/svg", ""
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"\.png"):
        picture(flat(TREE), suffix=".png")


def test_an_empty_text_is_an_empty_picture():
    words, squares = drawing(flat(Tree(("",), ())))
    assert (words, squares) == ([], {})


def test_the_picture_in_the_readme_is_a_tree_with_facts():
    root = ElementTree.parse(ROOT / "docs" / "tree.svg").getroot()
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[0] == "The dog barked at the bank clerk."
    assert {"hypernym", "canine", "talk", "banker"} <= {*texts}
    assert "(docs/tree.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
