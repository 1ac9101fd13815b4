"""Features of the joint linker: what is found by an index is what is found pair by pair."""

from itertools import pairwise

import numpy as np
import pytest

import kgkit
from kgkit.linking import auto
from kgkit.linking.joint.candidate_features import FEATURES as NAMES
from kgkit.linking.joint.candidate_features import CandidateFeatures
from kgkit.linking.joint.mention_features import mention_features
from kgkit.linking.joint.scorer import (
    RANKING,
    _support,
    other_bearers,
    parts_of_mention,
    ranking,
)
from kgkit.linking.joint.text import Text, sentence_begins, with_lines_joined
from kgkit.linking.joint.types import SORTS, named_sort
from kgkit.linking.joint.unspaced import FEATURES, unspaced_features, word_bounds
from kgkit.linking.joint.words import WordCounts
from kgkit.types import Mention
from kgkit.vectors.scan import unit
from tests.cli_helpers import run

TEXT = (
    "She was born in Milford, Ohio, and went to Paris, Texas. Paris is far from Milford and from Maine. "
    "In Italy she saw Florence, and Texas again.\n\nNobody in Milford knew Paris."
)


@pytest.fixture
def linker(names_home, monkeypatch):
    monkeypatch.setattr(auto, "encoder_is_installed", lambda: False)
    with kgkit.Linker.open("places", home=names_home, model="links-minilm") as linker:
        yield linker


def test_related_candidates_are_those_that_name_each_other_or_have_a_fact(linker):
    features = CandidateFeatures(linker.kb)
    [(document, _, _)] = linker._mentions([TEXT])
    owners = [
        (number, entity)
        for number, mention in enumerate(document.mentions)
        for entity in mention.candidates.ids.tolist()
    ]

    def related(one, other):
        a, b = features.of(one), features.of(other)
        return (
            other in a.neighbours
            or one in b.neighbours
            or any(name in a.text for name in b.names)
            or any(name in b.text for name in a.names)
        )

    texts = [mention.text.lower() for mention in document.mentions]
    expected = {
        (row, column)
        for row, (first, one) in enumerate(owners)
        for column, (second, other) in enumerate(owners)
        if first < second and texts[first] != texts[second] and one != other and related(one, other)
    }
    _, pairs = features(Text(document.text), document.mentions)
    assert {tuple(pair) for pair in pairs.tolist()} == expected and len(expected) > 20


def test_support_is_the_largest_share_of_each_other_name(linker):
    [(document, _, _)] = linker._mentions([TEXT])
    state = linker.scorer.read(document)
    shares = np.random.default_rng(1).random(len(state.names)).astype(np.float32)
    expected = np.zeros(len(shares), np.float32)
    for row in range(len(shares)):
        best = {}
        for pair in state.pairs.tolist():
            if row in pair:
                other = pair[0] + pair[1] - row
                best[state.names[other]] = max(best.get(state.names[other], 0), shares[other])
        expected[row] = sum(best.values())
    np.testing.assert_allclose(_support(state, shares), expected, rtol=1e-5)


def test_agreement_is_the_cosine_with_the_entities_of_the_other_names(linker):
    [(document, _, _)] = linker._mentions([TEXT])
    state = linker.scorer.read(document)
    draw = np.random.default_rng(1)
    texts, sentences = (
        unit(draw.normal(size=(len(state.names), 5))),
        unit(draw.normal(size=(len(state.sizes), 5))),
    )
    weights = np.array([1, 0, 1, 2, 3, 1, 0, 0], np.float32)  # q is the same in both rounds
    parts = ranking(state, weights, texts.astype(np.float32), sentences.astype(np.float32))
    owners = np.repeat(np.arange(len(state.sizes)), state.sizes)
    shares = np.exp(parts @ weights)
    shares /= np.bincount(owners, shares)[owners]
    for row, name in enumerate(state.names):
        others = [
            np.mean(
                [shares[owners == m] @ texts[owners == m] for m in set(owners[state.names == other])], axis=0
            )
            for other in set(state.names) - {name}
        ]
        assert parts[row, RANKING.index("agreement")] == pytest.approx(
            float(unit(np.mean(others, axis=0)[None])[0] @ texts[row]), abs=1e-4
        )


@pytest.mark.parametrize("text", ["", "  \n", "...", "\u0301", "大众", "Ⓐ Ⓑ"])
def test_texts_without_mentions_are_read(linker, text):
    [linked] = linker([text])
    assert linked.links == []


@pytest.mark.parametrize(
    ("text", "name", "sentences", "beside"),
    [
        ("It rained. Hope left! Then we", "Hope", ["It rained. ", "Hope left! ", "Then we"], ["", "left!"]),
        ("He saw St. Ives. We went", "St. Ives", ["He saw St. Ives. ", "We went"], ["He saw", "."]),
        ("By Dr. J. Marsh\nYork 3 Leeds 1", "York", ["By Dr. J. Marsh\n", "York 3 Leeds 1"], ["", "3 Leeds"]),
        ("Rome", "Rome", ["Rome"], ["", ""]),
    ],
)
def test_a_mention_is_read_in_its_sentence(text, name, sentences, beside):
    start = text.index(name)
    mention = Mention(start, start + len(name), name)
    begins = sentence_begins(text, [mention])
    assert [text[a:b] for a, b in pairwise([*begins, len(text)])] == sentences
    parts = [text[a:b] for a, b in parts_of_mention(Text(text), mention, begins)]
    own, before, behind, sentence, previous = parts
    at = next(number for number, sentence in enumerate(sentences) if name in sentence)
    assert (own, sentence, previous) == (name, sentences[at], sentences[max(0, at - 1)])
    assert ["" if part == name else part.strip() for part in (before, behind)] == beside


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (
            "We went to the old house of Frank\nSinatra, who sang there\nfor us.",
            "Frank Sinatra, who sang there for",
        ),
        (
            "> I saw the old show of Frank\n> Sinatra and was very\n> much moved by it.",
            "Frank \u2007\u2007Sinatra and was very \u2007\u2007much",
        ),
        ("We came to Paris, Texas in the month of June\n1998 and\nstayed.", "June 1998"),
        ("The hall was named for Booker T.\nWashington and was full\nto the doors.", "T. Washington"),
        ("The rain stopped.\nMark came and was\nwet.", "stopped.\nMark"),
        ("- Rose\n- Mark\n- Will", "- Rose\n- Mark\n- Will"),
        ("Heather\tEly\nJack\tHull", "Ely\nJack"),
        ("Dear Heather,\nSplit the bill with us", "Heather,\nSplit"),
        ("LONG HEADLINE OF THE DAY\nMark came.", "DAY\nMark"),
    ],
)
def test_lines_are_joined_where_a_sentence_goes_on(text, joined):
    found = with_lines_joined(text)
    assert len(found) == len(text) and joined in found


def test_columns_of_a_table_are_no_neighbours():
    text = Text("Heather\tEly   Jack Hull")
    assert [text.gap(number) for number in range(3)] == ["\n", "\n", " "]


def test_a_surname_behind_a_first_name_is_borne_by_another():
    text = Text("Yesterday Carla Milford sang. Then Milford, who was born in Ohio, left.")
    assert other_bearers(text, {}) == {"Milford"}
    assert other_bearers(text, {1: {0}, 2: {0}}) == frozenset()


@pytest.mark.parametrize(
    ("kind", "sort"),
    [
        ("City", "place"),
        ("people", "person"),
        ("Bands", "organisation"),
        ("地点", "place"),
        ("", None),
        ("x", None),
    ],
)
def test_the_word_for_a_kind_tells_the_sort(kind, sort):
    assert [name for name, is_one in zip(SORTS, named_sort(kind), strict=True) if is_one] == [sort] * bool(
        sort
    )


def test_a_name_across_words_crosses_their_bounds():
    text, bounds = "南京市长江大桥", frozenset([0, 3, 7])
    values = dict(zip(FEATURES, unspaced_features(text, 4, 7, bounds), strict=True))
    assert values["crosses word before"] and not values["crosses word behind"] and not values["whole word"]
    whole = dict(zip(FEATURES, unspaced_features(text, 3, 7, bounds), strict=True))
    assert whole["whole word"] and not whole["crosses word before"]
    assert not any(unspaced_features("Milford", 0, 7, None))


def test_words_of_chinese_are_cut_without_names_of_a_knowledge_base():
    pytest.importorskip("jieba")
    assert word_bounds("Milford") is None
    assert {0, 3, 7} <= word_bounds("南京市长江大桥")
    values = dict(zip(FEATURES, unspaced_features("我去北京", 2, 4, word_bounds("我去北京")), strict=True))
    assert values["place word"] and values["word count"] > 3


def test_a_population_is_no_count_of_links(tmp_path):
    table = tmp_path / "gazetteer.csv"
    table.write_text(
        "id,name,state,population\ntx,Texas,,\nt,Texas,,3056\nh,Houston,tx,2304580\n", encoding="utf-8"
    )
    options = ("--count", "population", "--fact", "state", "--home", tmp_path, "--quiet")
    assert run("build-kb", "table", table, "--name", "gazetteer", *options).code == 0
    with kgkit.open_kb("gazetteer", tmp_path) as kb:
        features = CandidateFeatures(kb)
        of = {key: features.of(kb[key].id) for key in ("tx", "t", "h")}
        assert {key: entity.population for key, entity in of.items()} == {
            "tx": 2304580,
            "t": 3056,
            "h": 2304580,
        }
        assert of["t"].is_counted_by_population
        text = "Texas is larger than Italy."
        mention = Mention(0, 5, "Texas", kb.candidates("Texas"))
        rows, _ = features(Text(text), [mention])
        assert not rows[0][:, NAMES.index("log prior")].any()


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    """Linker over works, people, a place and a company in Chinese, read without their word bounds."""
    home = tmp_path_factory.mktemp("chinese")
    table = home / "kb.csv"
    table.write_text(
        "id,name,aliases,description\n1,曹禺,,剧作家\n2,雷雨（话剧）,雷雨,曹禺的话剧\n3,围城（小说）,围城,钱钟书的小说\n"
        "4,苹果公司,苹果,美国手机公司\n5,大众汽车,大众,德国汽车公司\n6,钱钟书,,作家\n7,东京都,東京,日本の首都\n",
        "utf-8",
    )
    run("build-kb", "table", str(table), "--name", "zh", "--home", str(home), "--language", "zh",
        "--aliases", "aliases|", "--description", "description")  # fmt: skip
    with kgkit.Linker.open("zh", home=home, model="prior") as linker:
        yield linker


@pytest.mark.parametrize(
    ("text", "surface", "feature", "found"),
    [
        ("曹禺二十三岁写成雷雨。", "雷雨", "fact in sentence", True),
        ("昨晚雷雨交加。曹禺没有出门。", "雷雨", "fact in sentence", False),
        ("钱钟书的围城里有一句话。", "围城", "fact before", True),
        ("苹果的新款手机在上海开卖。", "苹果", "description words", True),
        ("苹果的新款手机在上海开卖。", "苹果", "description words in sentence", True),
        ("手机没电了。苹果很甜。", "苹果", "description words in sentence", False),
        ("她切了一个苹果给孙子。", "苹果", "description words", False),
        ("大众和别的牌子；大众汽车涨价了。", "大众", "longer name elsewhere", True),
        ("围城是一本小说。", "围城", "all other words", True),
        ("他被困在围城。", "围城", "all other words", False),
        ("雷雨是话剧。", "雷雨", "is plain label", True),
        ("首都は東京です。", "東京", "description words", True),
    ],
)
def test_words_and_facts_of_scripts_without_spaces_are_seen(chinese, text, surface, feature, found):
    [(document, _, _)] = chinese._mentions([text])
    rows, _ = CandidateFeatures(chinese.kb)(Text(text), document.mentions)
    [value] = [
        row[0, NAMES.index(feature)]
        for mention, row in zip(document.mentions, rows, strict=True)
        if mention.text == surface
    ][:1]
    assert (value > 0) == found


@pytest.fixture(scope="module")
def teams(tmp_path_factory):
    """Linker over countries, their teams, and towns with the states that they are in."""
    home = tmp_path_factory.mktemp("teams")
    table = home / "kb.csv"
    table.write_text(
        "id,name,aliases,in\nc,Norland,,\nn,Norland national football team,Norland,\ns,Sudmark,,\n"
        "m,Sudmark national football team,Sudmark,\na,Corda (Norland),Corda,Norland\n"
        "b,Corda (Sudmark),Corda,Sudmark\nh,Health Office,HO|WHO,\nk,Kinton,,\n",
        "utf-8",
    )
    run(
        "build-kb", "table", table, "--name", "teams", "--home", home, "--aliases", "aliases|", "--fact", "in"
    )
    with kgkit.Linker.open("teams", home=home, model="prior") as linker:
        yield linker


def _features_of(linker, text, surface, key):
    """Return the features of the last mention of a surface for one candidate, by name."""
    [(document, _, _)] = linker._mentions([text])
    rows, _ = CandidateFeatures(linker.kb)(Text(text), document.mentions)
    at = max(number for number, mention in enumerate(document.mentions) if mention.text == surface)
    ids = document.mentions[at].candidates.ids.tolist()
    return dict(zip(NAMES, rows[at][ids.index(linker.kb[key].id)].tolist(), strict=True))


def test_candidates_with_the_words_of_those_of_other_names_are_told(teams):
    text = "Norland beat Sudmark 2-1."
    assert _features_of(teams, text, "Norland", "n")["others alike"] > 0
    assert not _features_of(teams, text, "Norland", "c")["others alike"]
    assert not _features_of(teams, "Norland won. Norland was glad.", "Norland", "n")["others alike"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Corda is in Norland, and the other one in Sudmark.", "a"),
        ("Norland has a Corda. Of Sudmark, which has hills, Corda is the capital.", "b"),
    ],
)
def test_the_nearest_fact_of_a_sentence_is_told(teams, text, key):
    for other in "ab":
        assert _features_of(teams, text, "Corda", other)["fact nearest"] == (other == key)


@pytest.mark.parametrize("text", ["Corda is in Norland.", "Corda, a Norland town, has a fair."])
def test_a_fact_about_the_place_beside_a_name_is_next_to_it(teams, text):
    assert _features_of(teams, text, "Corda", "a")["fact next"]


def _mention_features(text, surface, spellings):
    start = text.index(surface)
    return mention_features(
        Text(text), start, start + len(surface), frozenset(spellings),
        WordCounts({"who": 90, "rose": 50}, {"who": 5, "rose": 40}), frozenset(), frozenset(), german=False,
    )  # fmt: skip


def test_an_acronym_that_the_kb_writes_so_is_no_word():
    found = _mention_features("The WHO in Geneva wants chairs.", "WHO", ["WHO"])
    assert not found["function word"] and not found["case"]
    assert _mention_features("The Who in Geneva.", "Who", ["WHO"])["function word"]


def test_a_genitive_is_no_part_of_a_word():
    found = _mention_features("It was Rose's chair.", "Rose", ["Rose"])
    assert not found["unknown word"] and found["possessive"]


@pytest.mark.parametrize(
    ("text", "feature"), [("Dear Rose, come soon.", "greeted"), ("Come soon. Yours,\nRose\n", "signed")]
)
def test_greetings_and_signatures_are_told(text, feature):
    assert _mention_features(text, "Rose", ["Rose"])[feature]
    assert not _mention_features("A Rose, they say.", "Rose", ["Rose"])[feature]


@pytest.mark.parametrize("end", ["\r", "\u2028", "\u2029", "\x85", "\x0c"])
def test_every_sign_of_a_line_end_ends_a_line(end):
    assert with_lines_joined(f"Margaret{end}Joy{end}Ann\n") == "Margaret\nJoy\nAnn\n"
    assert with_lines_joined("Margaret\r\nJoy") == "Margaret\r\nJoy"


@pytest.mark.parametrize("text", ["光明县里", "光明縣里", "光明県に", "光明駅で", "光明大學的"])
def test_what_makes_a_longer_name_is_known_in_all_scripts(text):
    values = dict(zip(FEATURES, unspaced_features(text, 0, 2, None), strict=True))
    assert values["place character behind"] or values["body words behind"]


@pytest.mark.parametrize(
    ("line", "style"),
    [("King Hussein Of Jordan Visits London", 1), ("King Hussein of Jordan was on his way to London.", 0),
     ("Send it to 14 Cambridge Road, Reading, Berkshire.", 0)],
)  # fmt: skip
def test_a_sentence_with_a_full_stop_is_no_title(line, style):
    assert Text(line).style(0) == style
