"""Files of K-BERT's tasks, made by hand: labels of texts and pairs, answers to questions, tags of tokens."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import SourceError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.ner import chunks
from kgkit.evaluation.records import joined
from kgkit.evaluation.task_scores import release_spans
from kgkit.evaluation.tasks import find_task
from kgkit.text import token_spans


@pytest.fixture
def put_text(tmp_path):
    def write(content):
        path = tmp_path / "x.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# -- labels -------------------------------------------------

FILES = {
    "book_review": "label\ttext_a\n1\t好看，值得一读。\n0\t没用的“鸡汤”。\n",
    "chnsenticorp": "label\ttext_a\n1\t房間~~還可以\n",
    "shopping": "label\ttext_a\n0\t服务 跟不上\n",
    "weibo": "label\ttext_a\n0\t[泪]今天//@某人：\n1\t哈哈\n",
    "lcqmc": "怎么开证明？\t证明怎么开？\t1\n爱情是什么歌\t她是谁？\t0\n",
    "xnli": "label\ttext_a\ttext_b\n0\t他走了。\t他不在。\n1\t他走了。\t他在。\n2\t他走了。\t下雨了。\n",
    "xnli_in_words": "text_a\ttext_b\tlabel\n甲\t乙\tentailment\n甲\t丙\tneutral\n甲\t丁\tcontradiction\n",
    "finance_qa": "label\ttext_a\ttext_b\n1\t什么是基金？\t基金是资金。\n0\t什么是基金？\t股票会涨。\n",
    "law_qa": "text_a\ttext_b\tlabel\n可以上诉吗？\t可以。\t1\n可以上诉吗？\t今天不行\t0\n",
    "nlpcc_dbqa": "qid\ttext_a\ttext_b\tlabel\n1\t谁？\t他。\t1\n1\t谁？\t它在巴黎。\t0\n",
}
"""Made by hand, as the files of the tasks are."""


@pytest.mark.parametrize("task", FILES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_files_of_the_tasks_are_read_as_they_are(tmp_path, task, end):
    path = tmp_path / f"{task}.tsv"
    path.write_text(FILES[task], encoding="utf-8", newline=end)
    lines = [line.split("\t") for line in FILES[task].splitlines()]
    named = task != "lcqmc"
    columns = lines.pop(0) if named else ["text_a", "text_b", "label"]
    expected = [dict(zip(columns, fields, strict=True)) for fields in lines]
    assert find_task("classification").read(path) == [
        Example(
            str(number),
            tuple(one[name] for name in ("text_a", "text_b") if name in one),
            gold=one["label"],
        )
        for number, one in enumerate(expected, start=1 + named)
    ]


def test_three_classes_are_told_apart(tmp_path):
    path = tmp_path / "xnli.tsv"
    path.write_text(FILES["xnli"], encoding="utf-8")
    examples = find_task("classification").read(path)
    assert find_task("classification").labels(examples) == ("0", "1", "2")
    predictions = [Prediction(name, label) for name, label in {"2": "0", "3": "2", "4": "2"}.items()]
    assert find_task("classification").score(examples, predictions) == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "x.tsv: no text in it"),
        (b"label\ttext_a\ttext_b\n", "x.tsv: no text in it"),
        (b"label\tquestion\ttext_b\n1\ta\tb\n", "x.tsv:1: "),
        (b"label\ttext_a\ttext_b\n1\ta\tb\n1\ta\n", "x.tsv:3: "),
        (b"label\ttext_a\ttext_b\n\ta\tb\n", "x.tsv:2: "),
        ("label\ttext_a\n1\t好\n".encode("gb18030"), "x.tsv:2: "),
    ],
)
def test_a_file_that_is_none_of_pairs_is_an_error_with_its_line(put_text, content, place):
    with pytest.raises(SourceError, match=place):
        find_task("classification").read(put_text(content))


LABEL_COUNTS = {
    "book_review/train.tsv": (20_000, 9_781),
    "book_review/dev.tsv": (10_000, 4_812),
    "book_review/test.tsv": (10_000, 4_890),
    "chnsenticorp/train.tsv": (9_600, 4_799),
    "chnsenticorp/dev.tsv": (1_200, 593),
    "chnsenticorp/test.tsv": (1_200, 608),
    "shopping/train.tsv": (20_000, 10_553),
    "shopping/dev.tsv": (10_000, 5_327),
    "shopping/test.tsv": (10_000, 5_231),
    "lcqmc/dev.csv": (4_401, 2_165),
    "lcqmc/test.csv": (4_401, 2_237),
}
"""Rows, and those with the label 1."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LABEL_COUNTS)
def test_the_files_of_labels_are_read_whole(shared_data, name):
    examples = find_task("classification").read(shared_data / "chinese_tasks" / f"{name}.xz")
    assert (len(examples), sum(one.gold == "1" for one in examples)) == LABEL_COUNTS[name]
    assert find_task("classification").labels(examples) == ("0", "1")
    assert {len(one.texts) for one in examples} == {2 if name.startswith("lcqmc") else 1}
    assert all(text.strip() for one in examples for text in one.texts)


# -- questions --------------------------------------------------------------

QUESTIONS = """\
qid\ttext_a\ttext_b\tlabel
1\t谁画了蒙娜丽莎？\t它在巴黎。\t0
1\t谁画了蒙娜丽莎？\t蒙娜丽莎是达芬奇的画。\t1

2\t番茄是水果吗？\t番茄是一种蔬菜。\t1
"""


def read_questions(path):
    return find_task("ranking").read(path)


def test_each_row_is_a_question_with_an_answer(put_text):
    assert read_questions(put_text(QUESTIONS)) == [
        Example("2", ("谁画了蒙娜丽莎？", "它在巴黎。"), group="1", gold="0"),
        Example("3", ("谁画了蒙娜丽莎？", "蒙娜丽莎是达芬奇的画。"), group="1", gold="1"),
        Example("5", ("番茄是水果吗？", "番茄是一种蔬菜。"), group="2", gold="1"),
    ]


def test_columns_of_questions_in_another_order_further_ones_and_line_ends_change_nothing(put_text):
    plain = read_questions(put_text(QUESTIONS))
    turned = "".join(
        "\t".join([*reversed(line.split("\t")), "x"] if line else []) + "\n"
        for line in QUESTIONS.splitlines()
    )
    for content in (turned, QUESTIONS.replace("\n", "\r\n"), "\ufeff" + QUESTIONS, QUESTIONS.rstrip("\n")):
        assert read_questions(put_text(content)) == plain


def test_a_file_of_questions_may_have_no_gold(put_text):
    assert read_questions(put_text("text_b\tqid\ttext_a\nb\t7\ta\n")) == [Example("2", ("a", "b"), group="7")]


def test_examples_of_classification_have_the_ids_and_texts_of_the_answers(put_text):
    path = put_text(QUESTIONS)
    assert find_task("classification").read(path) == [
        example._replace(group="") for example in read_questions(path)
    ]


QUESTION_HEADER = "qid\ttext_a\ttext_b\tlabel\n"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "x.tsv: no text in it"),
        (QUESTION_HEADER, "x.tsv: no text in it"),
        ("1\ta\tb\t1\n", "x.tsv:1: "),
        ("a\tb\t1\n", "x.tsv:1: "),
        ("label\ttext_a\ttext_b\n1\ta\tb\n", "x.tsv:2: "),
        ("qid\tqid\ttext_a\ttext_b\n", "x.tsv:1: "),
        (
            QUESTION_HEADER.replace("\n", "\tlabel\n") + "1\ta\tb\t1\t0\n",
            "x.tsv:1: ",
        ),
        (QUESTION_HEADER + "1\ta\tb\t1\n1\ta\t1\n", "x.tsv:3: "),
        (QUESTION_HEADER + " \ta\tb\t1\n", "x.tsv:2: "),
        (QUESTION_HEADER + "1\ta\tb\t2\n", "x.tsv:2: "),
        (QUESTION_HEADER + "1\ta\tb\t\n", "x.tsv:2: "),
        (QUESTION_HEADER.encode() + "1\t谁\t他\t1\n".encode("gb18030"), "x.tsv:2: "),
    ],
)
def test_what_is_no_file_of_questions_is_an_error_with_its_line(put_text, content, place):
    with pytest.raises(SourceError, match=place):
        read_questions(put_text(content))


# -- tags -------------------------------------------------------------------

TAG_HEADER = "text_a\tlabel\n"


def read_tags(path):
    return find_task("tagging").read(path)


def test_each_row_is_a_text_with_its_tags(put_text):
    rows = (
        "胸 部 C T 示 肺 炎\tB-BodyPart I-BodyPart B-Examine I-Examine O B-Disease I-Disease\n"
        "无 异 常 。\tO O O O\n"
    )
    first, second = read_tags(put_text(TAG_HEADER + rows))
    assert (first.id, second.id) == ("1", "2")
    assert first.texts == ("胸部CT示肺炎",) and first.tokens == tuple((n, n + 1) for n in range(7))
    assert first.gold[:3] == ("B-BodyPart", "I-BodyPart", "B-Examine")
    assert (second.texts, second.gold) == (("无异常。",), ("O",) * 4)


def test_white_space_other_than_a_space_can_be_a_token(put_text):
    [row] = read_tags(put_text(TAG_HEADER + "\u3000 李 \xa0 \x7f\tO B-PER O O\n"))
    assert row.texts == ("\u3000李\xa0\x7f",) and row.gold == ("O", "B-PER", "O", "O")


def test_a_name_that_the_beginning_of_its_row_cuts_off_is_read_as_conlleval_reads_it(put_text):
    rows = read_tags(put_text(TAG_HEADER + "腱 反 射\tI-BodyPart O O\n腹 痛\tB-BodyPart I-Symptom\n"))
    assert [chunks(row.gold) for row in rows] == [
        [(0, 1, "BodyPart")],
        [(0, 1, "BodyPart"), (1, 2, "Symptom")],
    ]
    assert [release_spans(row.gold) for row in rows] == [[], [(0, 2)]]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "x.tsv: no text"),
        (TAG_HEADER, "x.tsv: no text"),
        (TAG_HEADER + "腹 痛\tO O\n腹 痛\tO\n", "x.tsv:3: .*2 tokens, 1 tags"),
        (TAG_HEADER + "腹\tO\n腹 痛\tO E-X\n", "x.tsv:3: .*'E-X'"),
        (TAG_HEADER + "腹 痛\tB I\n", "x.tsv:2: .*'B'"),
        (TAG_HEADER + "腹 痛\n", "x.tsv:2: .*found 1"),
    ],
)
def test_what_is_no_file_of_tags_is_an_error_with_its_line(put_text, content, place):
    with pytest.raises(SourceError, match=place):
        read_tags(put_text(content))


TAG_COUNTS = {
    "medical_ner/train": (6_919, 23_735, 15),
    "medical_ner/dev": (939, 3_409, 1),
    "medical_ner/test": (755, 2_721, 1),
    "financial_ner/dev": (2_910, 6_611, 0),
    "financial_ner/test": (3_066, 6_951, 0),
    "msra_ner/dev": (2_318, 3_819, 0),
    "msra_ner/test": (4_636, 7_707, 0),
}
"""Rows, entities, and names that the beginning of a row has cut off: no begin tag, so no entity there."""

TYPES = {
    "medical_ner": {"BodyPart", "Cure", "Disease", "Examine", "Symptom"},
    "financial_ner": {"ORG", "PER", "POS"},
    "msra_ner": {"LOC", "ORG", "PER"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TAG_COUNTS)
def test_the_files_of_tags_are_read_whole(shared_data, name):
    rows = read_tags(shared_data / "chinese_tasks" / f"{name}.tsv.xz")
    entities = sum(len(release_spans(row.gold)) for row in rows)
    cut_off = sum(row.gold[0].startswith("I-") for row in rows)
    assert (len(rows), entities, cut_off) == TAG_COUNTS[name]
    names = [kind for row in rows for _, _, kind in chunks(row.gold)]
    assert len(names) == entities + cut_off and {*names} == TYPES[name.split("/")[0]]


# -- text -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("患 者 腹 痛 。", "患者腹痛。"),
        ("C T 示 1 . 5 c m", "CT示1.5cm"),  # characters: a surface such as CT can be found
        ("I - 1 3 1", "I-131"),
        ("使 用 iPhone 5 S 。", "使用iPhone 5 S。"),  # one word is longer, so 5 and S are words too
        ("GDP 增 长", "GDP增长"),
        ("New York 市", "New York市"),
        ("AT & T said : yes", "AT&T said:yes"),
        ("it 's what I don 't", "it's what I don 't"),  # 's is a token of its own, don't would be one
        ("don ' t", "don' t"),
        ("don 't 't", "don 't 't"),  # what is before a space has no part in a word behind it
        ("naïve été", "naïve été"),
        ("e \u0301 tude", "e \u0301 tude"),  # a mark alone would belong to the letter before
        ("コーヒー cup 苹 果", "コーヒーcup苹果"),
        ("x", "x"),
    ],
)
def test_chinese_stays_together_and_words_stay_apart(tokens, text):
    found, spans = joined(tokens.split(" "))
    assert found == text
    assert [found[start:end] for start, end in spans] == tokens.split(" ")


letters = st.sampled_from("abtTs1é\u0301'’.-_腹痛コ々。\u3000𠀀")
token_lists = st.lists(st.text(letters, min_size=1, max_size=4), min_size=1, max_size=8)


@given(token_lists)
def test_tokens_stand_where_they_are_said_to_with_at_most_a_space_between_them(tokens):
    text, spans = joined(tokens)
    assert [text[start:end] for start, end in spans] == tokens
    edges = [(0, 0), *spans, (len(text), len(text))]
    assert {text[end:start] for (_, end), (start, _) in pairwise(edges)} <= {"", " "}
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    if all(len(token) == 1 for token in tokens):
        assert text == "".join(tokens)


@given(token_lists.filter(lambda tokens: any(len(token) > 1 for token in tokens)))
def test_no_word_of_a_text_reaches_over_the_edge_of_a_token(tokens):
    text, spans = joined(tokens)
    edges = {end for _, end in spans}
    assert not [
        text[start:end] for start, end in token_spans(text) if not edges.isdisjoint(range(start + 1, end))
    ]


@given(token_lists.filter(lambda tokens: any(len(token) > 1 for token in tokens)))
def test_each_space_between_words_is_needed(tokens):
    text, spans = joined(tokens)
    for (_, end), (start, _) in pairwise(spans):
        if start > end:
            without = text[:end] + text[start:]
            assert any(first < end < last for first, last in token_spans(without)), (text, end)
