"""Records: the files of GLUE, JSON lines, plain lines and dictionaries all become the same examples."""

import json

import pytest

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.tasks import TASKS, find_task


@pytest.fixture
def write(tmp_path):
    def file(content, name="f0"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return file


def rows(*lines):
    return "".join("\t".join(fields) + "\n" for fields in lines)


# -- GLUE -------------------------------------------------------------------

MNLI = (
    "index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse",
    "sentence1_parse", "sentence2_parse", "sentence1", "sentence2",
)  # fmt: skip
STSB = (
    "index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2",
)  # fmt: skip
GLUE = {
    "CoLA": ("acceptability", rows(("gj04", "1", "", "They sang."), ("gj04", "0", "*", "They sang of.")),
             [("1", ("They sang.",), "1"), ("2", ("They sang of.",), "0")]),
    "CoLA, other marks": ("acceptability", rows(("x", "0", "*?", 'A "b".'), ("x", "1", "??", "c")),
             [("1", ('A "b".',), "0"), ("2", ("c",), "1")]),
    "CoLA, test": ("acceptability", rows(("index", "sentence"), ("0", "They sang.")),
             [("0", ("They sang.",), None)]),
    "SST-2": ("classification", rows(("sentence", "label"), ("a fine film ", "1")),
             [("2", ("a fine film ",), "1")]),
    "SST-2, test": ("classification", rows(("index", "sentence"), ("0", "a fine film")),
             [("0", ("a fine film",), None)]),
    "MRPC": ("pair", "\ufeff" + rows(("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
                          ("1", "70", "71", 'He said "no', "No, he said.")).replace("\n", "\r\n"),
             [("2", ('He said "no', "No, he said."), "1")]),
    "MRPC, test": ("pair", rows(("index", "#1 ID", "#2 ID", "#1 String", "#2 String"),
                                ("0", "70", "71", "a", "b")), [("0", ("a", "b"), None)]),
    "QQP": ("pair", rows(("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
                         ("133", "21", "22", 'Why is "x"?', "Why?", "0")),
             [("133", ('Why is "x"?', "Why?"), "0")]),
    "QQP, test": ("pair", rows(("id", "question1", "question2"), ("0", "a?", "b?")),
             [("0", ("a?", "b?"), None)]),
    "STS-B": ("regression", rows((*STSB, "score"),
                                 ("7", "news", "x", "2012", "1", "s", "t", "A plane.", "A jet.", "4.75")),
             [("7", ("A plane.", "A jet."), 4.75)]),
    "STS-B, test": ("regression", rows(STSB, ("7", "news", "x", "2012", "1", "s", "t", "a", "b")),
             [("7", ("a", "b"), None)]),
    "STS benchmark": ("regression", rows(
                ("main-news", "MSRvid", "2012test", "0001", "5.000", "A plane.", 'An "airplane.'),
                ("main-news", "MSRvid", "2012test", "0001", "0.2", "a", "b", "http://x", "http://y")),
             [("1", ("A plane.", 'An "airplane.'), 5.0), ("2", ("a", "b"), 0.2)]),
    "MNLI": ("pair", rows((*MNLI, "label1", "gold_label"),
                          ("0", "31", "31n", "x", "(", "(", "(", "(", "a", "b", "neutral", "entailment")),
             [("0", ("a", "b"), "entailment")]),
    "MNLI, dev": ("pair", rows((*MNLI, *(f"label{n}" for n in range(1, 6)), "gold_label"),
                               ("0", "31", "31n", "x", "(", "(", "(", "(", "a", "b", *"ncnnn", "neutral")),
             [("0", ("a", "b"), "neutral")]),
    "MNLI, test": ("pair", rows(MNLI, ("0", "31", "31n", "x", "(", "(", "(", "(", "a", "b")),
             [("0", ("a", "b"), None)]),
    "QNLI": ("pair", rows(("index", "question", "sentence", "label"), ("0", "When?", "In 1990.", "yes")),
             [("0", ("When?", "In 1990."), "yes")]),
    "RTE": ("pair", rows(("index", "sentence1", "sentence2", "label"), ("0", "a", "b", "not_entailment")),
             [("0", ("a", "b"), "not_entailment")]),
    "WNLI": ("pair", rows(("index", "sentence1", "sentence2", "label"), ("0", "a", "b", "1")),
             [("0", ("a", "b"), "1")]),
}  # fmt: skip
"""Made by hand, as the files of GLUE are: task, content, and id, texts and gold of each example."""


@pytest.mark.parametrize("name", GLUE)
def test_the_files_of_glue_are_read_as_they_are(write, name):
    task, content, expected = GLUE[name]
    path = write(content)
    assert [(one.id, one.texts, one.gold) for one in find_task(task).read(path)] == expected
    unlabelled = [parsed.example for parsed in find_task(task).read_records(path)]
    assert unlabelled == find_task(task).read(path)
    if task == "pair":
        assert find_task("classification").read(path) == find_task("pair").read(path)


def test_the_files_of_glue_at_hand_are_read_whole(shared_data):
    glue = shared_data / "glue"
    counts = {"train.tsv.xz": 7_250, "val.tsv": 1_301, "dev.tsv": 1_043}
    for name, count in counts.items():
        examples = find_task("acceptability").read(glue / "CoLA" / name)
        assert len(examples) == count and {one.gold for one in examples} == {"0", "1"}
        assert all(len(one.texts) == 1 and one.texts[0].strip() for one in examples)
    bare = find_task("acceptability").read(glue / "CoLA" / "test.tsv")
    assert len(bare) == 1_063 and {one.gold for one in bare} == {None}
    for name, count in {"sts-train.csv.xz": 5_749, "sts-dev.csv": 1_500, "sts-test.csv": 1_379}.items():
        examples = find_task("regression").read(glue / "STS-B" / name)
        assert len(examples) == count and all(len(one.texts) == 2 for one in examples)
        assert {min(one.gold for one in examples), max(one.gold for one in examples)} == {0.0, 5.0}


# -- numbers and choices ----------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\tb\t0.5\nc\td\t-1e1\n", [("1", ("a", "b"), 0.5), ("2", ("c", "d"), -10.0)]),
        ("a\t3\n", [("1", ("a",), 3.0)]),
        ("score\ttext\n1\ta\n", [("2", ("a",), 1.0)]),
        (
            '{"text": "a", "score": 2}\n{"text": "b", "label": "3.5"}\n',
            [("1", ("a",), 2.0), ("2", ("b",), 3.5)],
        ),
        ('{"text": "a"}\n', [("1", ("a",), None)]),
    ],
)
def test_numbers_are_read_from_tabs_and_from_json(write, content, expected):
    examples = find_task("regression").read(write(content))
    assert [(one.id, one.texts, one.gold) for one in examples] == expected
    assert all(one.gold is None or isinstance(one.gold, float) for one in examples)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": "Why?", "choices": ["a", "b"], "label": 1}, (("Why?",), ("a", "b"), 1)),
        ({"choices": ["a", "b", "c"]}, ((), ("a", "b", "c"), None)),
        (
            {"premise": "It fell.", "question": "cause", "choice1": "a", "choice2": "b", "label": 0},
            (("It fell.", "cause"), ("a", "b"), 0),
        ),
        ({"ctx": "A man", "endings": ["a", "b"], "label": "1"}, (("A man",), ("a", "b"), 1)),
        ({"sentence1": "x", "ending0": "a", "ending1": "b", "ending2": "c"}, (("x",), ("a", "b", "c"), None)),
        (  # CosmosQA
            {"context": "It rained.", "question": "Why?", "answer0": "a", "answer1": "b", "label": "1"},
            (("It rained.", "Why?"), ("a", "b"), 1),
        ),
    ],
)
def test_choices_are_read_from_json(write, record, expected):
    [example] = find_task("choice").read(write(json.dumps(record)))
    assert (example.texts, example.choices, example.gold) == expected


def test_choices_are_read_from_columns(write):
    path = write("choice0\tchoice1\tlabel\tcontext\na\tb\t1\tc\n")
    assert find_task("choice").read(path) == [Example("2", ("c",), gold=1, choices=("a", "b"))]


# -- JSON lines of every task ------------------------------------------------

RECORDS = {
    "classification": ({"text": "a", "label": "x"}, Example("1", ("a",), gold="x")),
    "acceptability": ({"sentence": "a", "label": 1}, Example("1", ("a",), gold="1")),
    "pair": ({"text_a": "a", "text_b": "b", "label": "x"}, Example("1", ("a", "b"), gold="x")),
    "ranking": (
        {"qid": 7, "text_a": "a", "text_b": "b", "label": 1}, Example("1", ("a", "b"), group="7", gold="1"),
    ),
    "tagging": (
        {"tokens": ["New", "York", "!"], "tags": ["B-X", "I-X", "O"]},
        Example("1", ("New York!",), tokens=((0, 3), (4, 8), (8, 9)), gold=("B-X", "I-X", "O")),
    ),
    "wic": ({"sentence1": "a", "sentence2": "b", "label": True}, Example("1", ("a", "b"), gold="T")),
    "relation": (
        {"text": "He runs Rome", "marks": [[0, 2], [8, 12]], "types": ["MAN", "CITY"], "label": "x"},
        Example("1", ("He runs Rome",), ((0, 2), (8, 12)), tail=("[SUBJECT=MAN]", "[OBJECT=CITY]"), gold="x"),
    ),
    "typing": (
        {"text": "In Rome", "marks": [[3, 7]], "labels": ["place", "city"]},
        Example("1", ("In Rome",), ((3, 7),), gold=frozenset({"place"})),
    ),
    "regression": ({"text": "a", "score": 1}, Example("1", ("a",), gold=1.0)),
    "choice": ({"choices": ["a", "b"], "label": 0}, Example("1", (), gold=0, choices=("a", "b"))),
}  # fmt: skip


def test_every_task_has_a_record():
    assert RECORDS.keys() == TASKS.keys()


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_one_example_from_a_file_and_from_a_program(write, name):
    task, (record, example) = find_task(name), RECORDS[name]
    path = write(json.dumps(record) + "\n")
    assert task.read(path) == [example]
    [parsed] = task.parse_records([{**record, "source": [1, {"a": None}], "note": "x"}])
    assert parsed[:2] == (example, {"source": [1, {"a": None}], "note": "x"})
    gold = {"label", "labels", "score", "tags"}
    bare = json.dumps({key: value for key, value in record.items() if key not in gold} | {"id": "k"})
    path = write(bare + "\n" + bare + "\n")
    assert [one.example for one in task.read_records(path)] == [example._replace(id="k", gold=None)] * 2
    with pytest.raises(SourceError, match="f0:2: two examples have the id 'k', those of line 1 and 2"):
        task.read(path)
    with pytest.raises(SourceError, match="two examples have the id 'k', those of record 1 and 2"):
        list(task.parse_records([json.loads(bare)] * 2, unique=True))


# -- without gold -----------------------------------------------------------


def test_lines_may_be_texts_and_nothing_else(write):
    path = write('a text\n\nanother, with a " in it\n')
    parsed = list(find_task("classification").read_records(path))
    assert [(one.example.id, one.example.texts) for one in parsed] == [
        ("1", ("a text",)),
        ("3", ('another, with a " in it',)),
    ]
    with pytest.raises(SourceError, match="f0:1: expected TEXT, TEXT, LABEL"):
        find_task("classification").read(path)
    [example] = [one.example for one in find_task("tagging").read_records(write("He's in 北京\n"))]
    assert [example.texts[0][slice(*span)] for span in example.tokens] == ["He", "'s", "in", "北", "京"]
    assert find_task("pair").read(write("a\tb\n")) == [Example("1", ("a", "b"))]


def test_texts_pairs_and_tokens_of_a_program_are_examples():
    assert [one.example.texts for one in find_task("classification").parse_records(["a", ("a", "b")])] == [
        ("a",),
        ("a", "b"),
    ]
    [tagged] = find_task("tagging").parse_records([["New", "York"]])
    assert tagged.example == Example("1", ("New York",), tokens=((0, 3), (4, 8)))
    for task, record in (("classification", 7), ("classification", ("a", "b", "c")), ("tagging", b"a")):
        with pytest.raises(SourceError, match=r"record 2 is .*: expected a dictionary, a text, or"):
            list(find_task(task).parse_records(["a", record]))


def test_files_in_the_format_of_a_task_are_read_without_gold_too(write):
    pairs = write("sentence\tN\t0-0\ta .\tb .\n")
    assert [one.example for one in find_task("wic").read_records(pairs)] == [Example("1", ("a .", "b ."))]
    named = write("sentence1\tsentence2\na .\tb .\n")
    assert [one.example for one in find_task("wic").read_records(named)] == [Example("2", ("a .", "b ."))]
    lines = write('{"text": "Word: go. Sentence 1: a Sentence 2: b", "label": 1}\n')
    assert [one.example.gold for one in find_task("wic").read_records(lines)] == ["T"]
    assert [one.gold for one in find_task("wic").read(lines)] == ["T"]
    with pytest.raises(UsageError, match="has its labels in its own lines: leave out the gold file"):
        find_task("wic").read(write('{"text_a": "a", "text_b": "b"}'), lines)


def test_lines_of_a_stream_are_parsed_one_at_a_time():
    def lines():
        yield 1, "a"
        yield 2, "b"
        raise AssertionError("read too far")

    parsed = find_task("classification").parse_lines(lines())
    assert [next(parsed).example.texts, next(parsed).example.texts] == [("a",), ("b",)]


# -- errors -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("regression", "a\tb\n", "f0:1: the score is 'b': expected a finite number"),
        ("regression", "a\t1\nb\tnan\n", "f0:2: the score is 'nan'"),
        ("regression", '{"text": "a", "score": true}\n', "f0:1: the score is True"),
        ("regression", '{"text": "a", "score": [1]}\n', r"f0:1: the score is \[1\]"),
        ("regression", "a\tb\tc\td\n", "f0:1: expected TEXT, TEXT, SCORE"),
        ("regression", rows((*"abcd", "1", "x", "y"), (*"abcd", "2", "x")), "f0:2: expected 7 tab-separated"),
        ("regression", rows((*"abcd", "1", "x", "y"), (*"abcd", "z", "x", "y")), "f0:2: the score is 'z'"),
        ("acceptability", rows(("a", "1", "", "x"), ("a", "1", "x")), "f0:2: expected 4 tab-separated"),
        ("choice", '{"text": "a", "choices": ["b"]}\n', "f0:1: there are 1 choices"),
        ("choice", '{"text": "a"}\n', "f0:1: there are 0 choices: expected a list of two or more"),
        ("choice", '{"choices": "ab"}\n', "f0:1: choices is 'ab': expected a list of strings"),
        ("choice", '{"choices": ["a", 1]}\n', r"f0:1: choices is \['a', 1\]: expected a list of strings"),
        ("choice", '{"choices": ["a", "b"], "label": 2}\n', "f0:1: the label is 2: expected .* 0 to 1"),
        ("choice", '{"choices": ["a", "b"], "label": 0.5}\n', "f0:1: the label is 0.5"),
        ("choice", "a\tb\n", "f0:1: expected a list of choices in JSON lines, or a first line that names"),
        ("ranking", "a\tb\t1\n", "f0:1: there is no qid: whose answer is it"),
        (
            "ranking",
            '{"qid": 1, "text_a": "a", "text_b": "b", "label": 2}',
            "f0:1: the label is '2'",
        ),
        ("ranking", '{"qid": 1, "text": "a"}', "f0:1: example 1 is one text, not a pair"),
        (
            "wic",
            '{"text_a": "a", "text_b": "b", "label": "maybe"}',
            "f0:1: the label is 'maybe'; it is",
        ),
        (
            "tagging",
            '{"tokens": ["a"], "tags": ["O", "O"]}',
            "f0:1: expected a tag for each token; found 1",
        ),
        ("tagging", '{"tokens": ["a"], "tags": ["X"]}', "f0:1: a tag is 'X'"),
        ("tagging", '{"tokens": []}', "f0:1: there is no token"),
        ("tagging", '{"text_b": "a"}', "f0:1: there is neither a text nor a list of tokens"),
        ("tagging", "text_a\tlabel\na b\tO\n", "f0:2: expected a tag for each token; found 2 tokens, 1 tags"),
        ("relation", '{"text": "ab", "marks": [[0, 1]]}', r"f0:1: marks is \[\[0, 1\]\]: expected 2 spans"),
        ("relation", '{"text": "ab", "marks": [[0, 1], [1, 3]]}', "f0:1: marks is .*: expected 2 spans"),
        ("relation", '{"text": "ab"}', "f0:1: marks is None: expected 2 spans"),
        ("typing", '{"text": "a b", "marks": [[1, 2]]}', "f0:1: marks is .*: expected 1 spans"),
        ("classification", "text\ttext\tlabel\na\tb\tc\n", "f0:1: the column text comes more than once"),
        ("classification", '{"text": "a"}\n{"text": "\\ud8', "f0:2: expected {"),
        ("pair", '{"a":' * 100_000, "f0:1: expected {"),
    ],
)
def test_a_bad_line_is_one_error_with_its_place(write, task, content, message):
    with pytest.raises(SourceError, match=message):
        find_task(task).read(write(content))


def test_nulls_that_no_task_asks_for_are_kept_in_the_order_of_the_record():
    record = {"page": None, "text": "a", "label": None, "links": None, "score": None, "source": 7}
    [parsed] = find_task("classification").parse_records([record])
    assert [*parsed.unused.items()] == [("page", None), ("links", None), ("score", None), ("source", 7)]
    assert parsed.example == Example("1", ("a",))
    [parsed] = find_task("regression").parse_records([record])
    assert [*parsed.unused] == ["page", "links", "source"]


def test_a_blank_text_has_no_tokens_and_a_blank_list_of_them_is_an_error():
    [blank, empty] = find_task("tagging").parse_records([{"text": " \u3000"}, {"text": ""}])
    assert blank.example.tokens == empty.example.tokens == () and blank.example.gold is None
    with pytest.raises(SourceError, match="record 1: there is no token"):
        list(find_task("tagging").parse_records([{"tokens": []}]))


def test_a_bad_record_of_a_program_is_an_error_with_its_position():
    for task, record in (
        ("classification", "a\ud800"),
        ("pair", ["a", "\ud800"]),
        ("tagging", ["a", "\ud800"]),
        ("regression", {"text": "a", "label": 1e39}),
    ):
        with pytest.raises(SourceError, match=r"^record 1: "):
            list(find_task(task).parse_records([record]))
    with pytest.raises(SourceError, match=r"^record 2: the score is 'x': expected a finite number"):
        list(find_task("regression").parse_records([{"text": "a"}, {"text": "b", "score": "x"}]))


@pytest.mark.parametrize("task", TASKS)
def test_a_missing_and_an_empty_file_are_errors(task, write, tmp_path):
    with pytest.raises(NotThere):
        list(find_task(task).read_records(tmp_path / "x"))
    with pytest.raises(SourceError):
        list(find_task(task).read_records(write("")))
