"""Sentence trees beside their definition, token by token, in trees small enough to check by eye."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building import Alias, Entity, Triple
from kgkit.candidates import AliasGenerator, SegmentGenerator
from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.trees import (
    Branch,
    Flattener,
    Frame,
    Hook,
    Tree,
    TreeBuilder,
    TreeConfig,
    cutter,
    generators_of,
    visible,
)  # fmt: skip
from kgkit.types import Document, Link, LinkedDocument, Mention
from tests.small_kb import build

WORDS = cutter(r"\S+")
RECORDS = [
    Entity("tim", "Tim Cook"), Entity("apple", "Apple"), Entity("beijing", "Beijing"),
    Entity("china", "China"), Entity("city", "City"), Entity("cook", "cook"), Entity("job", "profession"),
    Alias("Tim Cook", "tim", 3), Alias("Cook", "tim", 1), Alias("cook", "cook", 5),
    Alias("Beijing", "beijing"), Alias("China", "china"),
    Triple("tim", "CEO", "apple"), Triple("beijing", "capital", "china"), Triple("beijing", "is_a", "city"),
    Triple("cook", "is_a", "job"),
]  # fmt: skip
SENTENCE = "Tim Cook is visiting Beijing now"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("paper"), RECORDS, name="paper") as kb:
        yield kb


@pytest.fixture(scope="module")
def builder(kb):
    return TreeBuilder([AliasGenerator(kb)])


def trees_of(builder, *texts):
    return [*builder([tuple(Document("", text) for text in texts)])]


def test_the_sentence_of_the_paper(builder):
    [tree] = trees_of(builder, SENTENCE)
    flat = Flattener(WORDS, Frame(before=("[CLS]",)))(tree)
    told = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now"
    assert flat.tokens == told.split()
    assert flat.positions.tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6]
    assert flat.branches.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 3, 3, 0]
    assert flat.hooks.tolist() == [0, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0]
    rows = ["".join(" #"[int(seen)] for seen in row) for row in visible(flat.branches, flat.hooks)]
    assert rows == [
        "###  ###    #",  # [CLS]: the sentence
        "########    #",  # Tim: and what hangs from Tim Cook
        "########    #",
        " ####        ",  # CEO Apple: Tim Cook and itself
        " ####        ",
        "###  ###    #",
        "###  ###    #",
        "###  ########",  # Beijing: and both its facts
        "       ###   ",  # capital China: Beijing and itself, not the fact beside it
        "       ###   ",
        "       #  ## ",
        "       #  ## ",
        "###  ###    #",
    ]
    starts, ends = flat.starts.tolist(), flat.ends.tolist()
    said = [SENTENCE[start:end] if start >= 0 else "" for start, end in zip(starts, ends, strict=True)]
    assert said == ["", "Tim", "Cook", "", "", "is", "visiting", "Beijing", "", "", "", "", "now"]


def test_facts_are_outgoing_in_the_order_of_the_data_and_no_more_than_asked_for(kb):
    [tree] = trees_of(
        TreeBuilder([AliasGenerator(kb)], TreeConfig(max_facts=1, relations=False)), "China Beijing"
    )
    assert tree.hooks == (Hook(0, 6, 13, (Branch(("China",), "paper", "beijing"),)),)


def test_values_are_injected_behind_facts_if_they_are_asked_for(tmp_path):
    told = {"population": 4812, "motto": ["By tide", "and time"], "port": True, "at": {"lat": 1.5}}
    records = [
        Entity("t", "Tidewick", attributes=told), Entity("c", "Carrow"), Alias("Tidewick", "t"),
        Triple("t", "part of", "c"),
    ]  # fmt: skip
    with build(tmp_path, records, name="towns") as towns:
        for attributes in (False, True):
            config = TreeConfig(max_facts=9, attributes=attributes)
            [tree] = trees_of(TreeBuilder(generators_of([towns], "longest"), config), "In Tidewick")
            found = [one.words for one in tree.hooks[0].branches]
            values = [("population", "4812"), ("motto", "By tide"), ("motto", "and time")]
            assert found == [("part of", "Carrow"), *(values if attributes else [])]
            assert {one.entity for one in tree.hooks[0].branches} == {"t"}


def test_a_mention_means_its_first_candidate_and_a_link_what_it_says(builder):
    [guessed] = trees_of(builder, "The cook left")
    [branch] = guessed.hooks[0].branches
    assert branch == Branch(("is_a", "profession"), "paper", "cook")
    linked = LinkedDocument("", "The cook left", "", [
        Link(0, 3, "The", "paper", None, None, "", 0.9, True, []),
        Link(4, 8, "cook", "paper", "tim", None, "", 0.9, False, []),
    ])  # fmt: skip
    [told] = builder([(linked,)])
    assert told.hooks == (Hook(0, 4, 8, (Branch(("CEO", "Apple"), "paper", "tim"),)),)


def test_mentions_that_are_given_are_looked_up_as_they_were_cut(builder):
    cut = [Mention(0, 3, "Tim"), Mention(4, 8, "Cook"), Mention(9, 11, "is")]
    [tree] = builder([(Document("", "Tim Cook is", mentions=cut),)])
    assert [(hook.start, hook.end) for hook in tree.hooks] == [(4, 8)]


def test_what_a_link_names_must_be_here(builder):
    def linked(kb, entity):
        return LinkedDocument("", "cook", "", [Link(0, 4, "cook", kb, entity, None, "", 1.0, False, [])])

    with pytest.raises(UsageError, match="'cook' is linked to 'other'; the knowledge bases here: paper"):
        [*builder([(linked("other", "tim"),)])]
    with pytest.raises(UnknownEntity):
        [*builder([(linked("paper", "nobody"),)])]


def test_several_knowledge_bases_share_a_mention_and_the_longer_mention_wins(kb, tmp_path):
    records = [
        Entity("p", "person"), Entity("t"), Entity("v"), Alias("Tim Cook", "t"), Alias("Beijing now", "v"),
        Triple("t", "is_a", "p"), Triple("v", "was", "p"),
    ]  # fmt: skip
    with build(tmp_path, records, name="other") as other:
        [tree] = trees_of(TreeBuilder([AliasGenerator(kb), AliasGenerator(other)]), SENTENCE)
        assert [(hook.start, hook.end) for hook in tree.hooks] == [(0, 8), (21, 32)]
        assert [(one.kb, *one.words) for one in tree.hooks[0].branches] == [
            ("paper", "CEO", "Apple"), ("other", "is_a", "person"),
        ]  # fmt: skip
        wrong = AliasGenerator(kb).candidates_of(Mention(0, 4, "cook"))  # of which of the two it does not say
        given = Document("", "Tim Cook", mentions=[Mention(0, 8, "Tim Cook", wrong)])
        [tree] = TreeBuilder([AliasGenerator(kb), AliasGenerator(other)])([(given,)])
        assert [one.entity for one in tree.hooks[0].branches] == ["tim", "t"]


def test_a_mention_without_facts_covers_none_that_has_some(kb, tmp_path):
    records = [Entity("b"), Alias("visiting Beijing", "b")]
    with build(tmp_path, records, name="bare") as bare:
        [tree] = trees_of(TreeBuilder([AliasGenerator(bare), AliasGenerator(kb)]), SENTENCE)
    assert [(hook.start, hook.end) for hook in tree.hooks] == [(0, 8), (21, 28)]


def test_words_are_found_as_it_suits_the_knowledge_base(tmp_path):
    records = [
        Entity("run.v", "run", pos="v"), Entity("go.v", "go", pos="v"), Alias("run", "run.v"),
        Triple("run.v", "is", "go.v"),
    ]  # fmt: skip
    for generator, spans in (("lemma", [(5, 9)]), ("alias", [])):
        with build(tmp_path, records, name=generator, generator=generator) as kb:
            [tree] = trees_of(TreeBuilder(generators_of([kb], "longest")), "They runs")
        assert [(hook.start, hook.end) for hook in tree.hooks] == spans


def test_a_query_that_is_none_is_refused(kb):
    with pytest.raises(UnknownName, match="no query named 'jeiba'"):
        generators_of([kb], "jeiba")


def test_a_knowledge_base_is_named_once(kb):
    with pytest.raises(UsageError, match="a knowledge base is named twice"):
        TreeBuilder([AliasGenerator(kb), AliasGenerator(kb)])


def test_without_knowledge_bases_links_and_mentions_bring_nothing():
    link = Link(0, 4, "cook", "paper", "tim", None, "", 1.0, False, [])
    for one in (
        LinkedDocument("", "cook", "", [link]),
        Document("", "cook", mentions=[Mention(0, 4, "cook")]),
    ):
        assert [*TreeBuilder([])([(one,)])] == [Tree(("cook",), ())]


def test_tokens_of_a_document_can_be_its_segments(kb):
    builder = TreeBuilder([SegmentGenerator(kb)])
    [tree] = builder([(Document("", "Tim Cook", tokens=[(0, 3), (4, 8)]),)])
    assert [(hook.start, hook.end) for hook in tree.hooks] == [(4, 8)]


def test_pairs_have_a_text_each(builder):
    [tree] = trees_of(builder, "In Beijing", "Tim Cook")
    flat = Flattener(WORDS, Frame(("[CLS]",), ("[SEP]",), ("[SEP]",)))(tree)
    assert flat.tokens == "[CLS] In Beijing capital China is_a City [SEP] Tim Cook CEO Apple [SEP]".split()
    assert flat.texts.tolist() == [0] * 8 + [1] * 5
    assert flat.positions.tolist() == [0, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 7, 6]
    assert flat.starts.tolist() == [-1, 0, 3, -1, -1, -1, -1, -1, 0, 4, -1, -1, -1]


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (13, "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now"),
        (12, "[CLS] Tim Cook CEO Apple is visiting Beijing capital China now"),
        (10, "[CLS] Tim Cook CEO Apple is visiting Beijing now"),
        (8, "[CLS] Tim Cook is visiting Beijing now"),
        (6, "[CLS] Tim Cook is visiting Beijing"),
        (2, "[CLS] Tim"),
    ],
)
def test_the_text_goes_first_and_a_fact_that_does_not_fit_is_left_out_whole(builder, size, told):
    [tree] = trees_of(builder, SENTENCE)
    flat = Flattener(WORDS, Frame(before=("[CLS]",)), size)(tree)
    assert flat.tokens == told.split()
    # The rest is as if what is left out had never hung there.
    numbers = [*dict.fromkeys(flat.branches[flat.branches > 0].tolist())]
    assert numbers == [*range(1, len(numbers) + 1)]


def test_what_hangs_from_a_mention_that_is_cut_off_is_left_out():
    tree = Tree(("a b c",), (Hook(0, 2, 5, (Branch(("x",), "", ""),)),))
    assert Flattener(WORDS, size=3)(tree).tokens == ["a", "b", "c"]
    assert Flattener(WORDS, size=2)(tree).tokens == ["a", "b"]
    assert Flattener(WORDS, size=4)(tree).tokens == ["a", "b", "c", "x"]


def test_the_longer_text_loses_its_end_first():
    tree = Tree(("a b c d e", "f g"), ())
    for size, told in ((7, "abcdefg"), (6, "abcdfg"), (4, "abfg"), (3, "afg"), (2, "af")):
        flatten = Flattener(WORDS, size=size)
        assert "".join(flatten(tree).tokens) == told and flatten.shortened == (size < 7)


def test_a_size_without_room_for_a_text_is_refused():
    with pytest.raises(UsageError, match="size is 2: special tokens leave no room"):
        Flattener(WORDS, Frame(("[CLS]",), (), ("[SEP]",)), 2)
    with pytest.raises(UsageError, match="max_facts is 0"):
        TreeConfig(max_facts=0)


def test_special_tokens_are_not_cut():
    pieces = cutter(special=["[MASK]"])("这[MASK] 是")
    assert (pieces.ids, pieces.starts, pieces.ends) == (["这", "[MASK]", "是"], [0, 1, 8], [1, 7, 9])


def test_nothing_comes_of_nothing(builder):
    [tree] = trees_of(builder, "")
    flat = Flattener(WORDS)(tree)
    assert len(flat) == 0 and visible(flat.branches, flat.hooks).shape == (0, 0)


# -- beside the definition ----------------------------------------------------


@st.composite
def trees(draw):
    """Trees of texts of letters, a token each; mentions begin and end anywhere, branches may be empty."""
    texts = draw(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=2))
    hooks = []
    for number, text in enumerate(texts):
        places = draw(st.lists(st.integers(0, len(text)), unique=True, max_size=6).map(sorted))
        for start, end in [*pairwise(places)][:: draw(st.sampled_from([1, 2]))]:
            words = draw(st.lists(st.lists(st.text("xyz", max_size=3), max_size=2), max_size=3))
            hooks.append(Hook(number, start, end, tuple(Branch(tuple(one), "", "") for one in words)))
    return Tree(tuple(texts), tuple(hooks))


def slow(tree, frame, size):
    """Return `(token, position, branch, mention)` of each token, a node at a time."""
    letters = [[(place, one) for place, one in enumerate(text) if one != " "] for text in tree.texts]
    room = (size or 10_000) - len(frame.before) - len(frame.between) * (len(letters) - 1) - len(frame.after)
    while sum(map(len, letters)) > room:
        max(letters, key=len).pop()
    room -= sum(map(len, letters))
    found, position, branch, mention = [], 0, 0, 0

    def add(token):
        nonlocal position
        found.append([token, position, 0, 0])
        position += 1

    for token in frame.before:
        add(token)
    for number, text in enumerate(letters):
        for token in frame.between if number else ():
            add(token)
        whole = [place for place, one in enumerate(tree.texts[number]) if one != " "]
        for place, letter in text:
            add(letter)
            for hook in tree.hooks:
                inside = [one for one in whole if hook.start <= one < hook.end]
                if hook.text != number or not inside or inside[-1] != place:
                    continue
                some = []
                for one in hook.branches:
                    tokens = "".join(one.words)
                    if tokens and len(tokens) <= room:
                        some.append(tokens)
                        room -= len(tokens)
                if some:
                    mention += 1
                    for node in found[-len(inside) :]:
                        node[3] = mention
                for tokens in some:
                    branch += 1
                    found += [[one, position + step, branch, mention] for step, one in enumerate(tokens)]
    for token in frame.after:
        add(token)
    return found


@given(trees(), st.none() | st.integers(6, 20), st.booleans())
def test_flat_trees_agree_with_the_definition(tree, size, framed):
    frame = Frame(("^",), ("|",), ("$",)) if framed else Frame()
    flat = Flattener(cutter(), frame, size)(tree)
    nodes = slow(tree, frame, size)
    rows = zip(flat.tokens, *(row.tolist() for row in flat[1:4]), strict=True)
    assert [*map(list, rows)] == nodes
    assert size is None or len(flat) <= size
    seen = visible(flat.branches, flat.hooks)
    for row, (_, _, mine, hook) in enumerate(nodes):
        for column, (_, _, other, beside) in enumerate(nodes):
            together = hook == beside > 0
            assert seen[row, column] == (
                mine == other or (mine == 0 and together) or (other == 0 and together)
            )


def test_a_batch_of_matrices_is_each_of_them():
    branches, hooks = np.array([[0, 1, 0], [0, 0, 1]]), np.array([[1, 1, 0], [0, 1, 1]])
    both = visible(branches, hooks)
    assert all(np.array_equal(both[row], visible(branches[row], hooks[row])) for row in range(2))
