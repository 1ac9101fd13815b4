"""Formats of the tasks' own: WiC, SemEval-2010 task 8, TACRED, FewRel and Open Entity, made by hand."""

import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.examples import Example, hold_out
from kgkit.evaluation.task_formats import is_fewrel, read_relations, read_types, read_wic
from kgkit.evaluation.tasks import find_task


@pytest.fixture
def put(tmp_path):
    def write(content):
        path = tmp_path / "x"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def lines_of(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def names_of(example):
    return [example.texts[0][slice(*mark)] for mark in example.marks]


@pytest.mark.parametrize("read", [read_wic, read_relations, read_types])
def test_a_file_that_is_not_there_is_an_error(read, tmp_path):
    with pytest.raises(NotThere):
        list(read(tmp_path / "y"))


# -- words in context -------------------------------------------------------

RELEASE = "go\tV\t5-2\tHow fast does it go ?\tThe patient went .\nflight\tN\t1-0\tMy flight .\tFlight 7 .\n"
PAIRS = [
    Example("1", ("How fast does it go ?", "The patient went ."), gold="F"),
    Example("2", ("My flight .", "Flight 7 ."), gold="T"),
]


def json_line(text, label=1):
    return json.dumps({"label": label, "text": text}) + "\n"


def test_json_lines_carry_their_labels(tmp_path):
    first = json_line("Word: go. Sentence 1: How fast does it go ? Sentence 2: The patient went .", 0)
    second = json_line("Word: flight. Sentence 1: My flight . Sentence 2: Flight 7 .")
    (tmp_path / "x").write_text(first + "\n" + second, newline="\r\n")
    assert [*read_wic(tmp_path / "x")] == PAIRS


def test_the_release_has_its_labels_in_another_file(tmp_path):
    (tmp_path / "x").write_text(RELEASE)
    (tmp_path / "gold").write_text("F\nT\n", newline="\r\n")
    assert [*read_wic(tmp_path / "x", tmp_path / "gold")] == PAIRS
    assert [pair.gold for pair in read_wic(tmp_path / "x")] == [None, None]


def test_json_lines_may_have_no_labels(put):
    [pair] = read_wic(put('{"text": "Word: a. Sentence 1: A . Sentence 2: A ."}\n'))
    assert pair.gold is None


def test_a_sentence_may_hold_what_begins_the_first_sentence(put):
    [pair] = read_wic(put(json_line("Word: it. Sentence 1: As it says . Sentence 1: b Sentence 2: it")))
    assert pair.texts == ("As it says . Sentence 1: b", "it")


sentences = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text.strip() and "Sentence 2:" not in text
)


@given(word=st.text("abz -'", min_size=1).filter(str.strip), first=sentences, second=sentences)
def test_what_was_put_in_a_text_is_read_out_of_it(tmp_path_factory, word, first, second):
    path = tmp_path_factory.getbasetemp() / "pair"
    path.write_text(json_line(f"Word: {word}. Sentence 1: {first} Sentence 2: {second}"))
    [pair] = read_wic(path)
    assert pair.texts == (first.strip(), second.strip())


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "x: no pair"),
        ('{"text": 1}\n', "x:1: "),
        (json_line("Word: a. Sentence 1: b Sentence 2: c", 2), "x:1: "),
        (json_line("Word: a. Sentence 1: b"), "x:1: "),
        (json_line("Word: a. Sentence 1:   Sentence 2: c"), "x:1: "),
        (json_line("Word: a. Sentence 1: b Sentence 2: c Sentence 2: d"), "x:1: .*Sentence 2"),
        ("go\tV\t1-2\tI go .\n", "x:1: .*found 4"),
        ("go\tX\t1-2\tI go .\tGo !\n", "x:1: "),
        ("go\tV\t1\tI go .\tGo !\n", "x:1: "),
        ("go\tV\t1-0\tI go .\t \n", "x:1: "),
    ],
)
def test_what_is_no_file_of_wic_is_an_error_with_its_line(put, content, place):
    with pytest.raises(SourceError, match=place):
        list(read_wic(put(content)))


def test_gold_that_does_not_belong_to_the_pairs_is_refused(put, tmp_path):
    gold = tmp_path / "gold"
    gold.write_text("T\nF\nF\n")
    with pytest.raises(SourceError, match=r"gold: 3 labels, .* 2 pairs"):
        list(read_wic(put(RELEASE), gold))
    gold.write_text("T\nno\n")
    with pytest.raises(SourceError, match="gold:2: "):
        list(read_wic(put(RELEASE), gold))
    with pytest.raises(NotThere):
        list(read_wic(put(RELEASE), tmp_path / "other"))
    with pytest.raises(UsageError, match="gold"):
        list(read_wic(put(json_line("Word: a. Sentence 1: b Sentence 2: c")), gold))


def test_the_files_of_wic_are_read_whole(shared_data):
    parts = [
        list(read_wic(shared_data / "wic" / name)) for name in ("train_part1.jsonl.xz", "train_part2.jsonl")
    ]
    assert [len(part) for part in parts] == [5_228, 200]
    assert [sum(pair.gold == "T" for pair in part) for part in parts] == [2_615, 99]
    assert not any("Sentence " in "".join(pair.texts) for part in parts for pair in part)


# -- SemEval-2010 task 8 ----------------------------------------------------

SEMEVAL = """1\t"The <e1>dog</e1> chewed the <e2>bone</e2>."
Instrument-Agency(e2,e1)
Comment: why not

2\t"A <e2>box</e2> holds the "old" <e1>key</e1>"
Content-Container(e1,e2)

3\t"No <e1>relation</e1> to the <e2>rest</e2>."
Other
Comment:
"""


def test_names_stand_where_their_tags_stood(tmp_path):
    (tmp_path / "x.txt").write_text(SEMEVAL, newline="\r\n")
    found = list(read_relations(tmp_path / "x.txt"))
    assert [one.texts[0] for one in found] == [
        "The dog chewed the bone.", 'A box holds the "old" key', "No relation to the rest.",
    ]  # fmt: skip
    assert [names_of(one) for one in found] == [["dog", "bone"], ["key", "box"], ["relation", "rest"]]
    labels = ["Instrument-Agency(e2,e1)", "Content-Container(e1,e2)", "Other"]
    assert [one.gold for one in found] == labels and [one.id for one in found] == ["1", "2", "3"]


def test_a_file_of_semeval_without_gold_is_read(put):
    found = read_relations(put('7\t"<e1>a</e1> <e2>b</e2>"\n8\t<e1>c</e1> <e2>d</e2>\n'))
    assert [(one.id, one.texts[0], one.gold) for one in found] == [("7", "a b", None), ("8", "c d", None)]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "no instance in it"),
        ('1\t"a <e1>b</e1> c"\nOther\n', "x:1: "),
        ('1\t"<e1>a</e1> <e1>b</e1> <e2>c</e2>"\nOther\n', "x:1: "),
        ('1\t"</e1>a<e1> <e2>c</e2>"\nOther\n', "x:1: "),
        ('1\t"a <e1> </e1> <e2>c</e2>"\nOther\n', "x:1: "),
        ('1\t"<e1>a</e1> <e2>c</e2>"\nOthers\n', "x:2: "),
        ('1\t"<e1>a</e1> <e2>c</e2>"\nOther\nOther\n', "x:3: "),
        ("Other\n", "x:1: "),
        (2 * '7\t"<e1>a</e1> <e2>c</e2>"\nOther\n', "x:3: .*'7'"),
    ],
)
def test_what_is_no_file_of_semeval_is_an_error_with_its_line(put, content, place):
    with pytest.raises(SourceError, match=place):
        list(read_relations(put(content)))


def test_the_files_of_semeval_are_read_whole(shared_data):
    folder = shared_data / "semeval2010_task8"
    train, test = (
        list(read_relations(folder / f"{name}.TXT.xz")) for name in ("TRAIN_FILE", "TEST_FILE_FULL")
    )
    assert (len(train), len(test)) == (8_000, 2_717)
    assert len({one.gold for one in train}) == 19
    assert all(name.strip() for one in [*train, *test] for name in names_of(one))
    assert not any("<e" in one.texts[0] for one in [*train, *test])


# -- TACRED -----------------------------------------------------------------


def record(**changes):
    return {
        "id": "e7",
        "docid": "D1",
        "relation": "org:founded_by",
        "token": ["Ann", "Lee", "-LRB-", "40", "-RRB-", "founded", "Acme", "-LSB-", "1", "-RSB-", "."],
        "subj_start": 6,
        "subj_end": 6,
        "obj_start": 0,
        "obj_end": 1,
        "subj_type": "ORGANIZATION",
        "obj_type": "PERSON",
        "stanford_pos": ["NNP", "NNP"],
    } | changes


def test_the_subject_is_the_first_name_and_the_object_the_second(put):
    [found] = read_relations(put([record()]))
    assert found == Example(
        "e7", ("Ann Lee ( 40 ) founded Acme [ 1 ] .",), ((23, 27), (0, 7)),
        tail=("[SUBJECT=ORGANIZATION]", "[OBJECT=PERSON]"), gold="org:founded_by",
    )  # fmt: skip
    assert names_of(found) == ["Acme", "Ann Lee"]


def test_brackets_are_brackets_again_and_only_where_a_token_is_one(put):
    tokens = "-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- -lrb- a-LRB-".split()
    [found] = read_relations(put([record(token=tokens, subj_start=0, subj_end=5, obj_start=7, obj_end=7)]))
    assert found.texts == ("( ) [ ] { } -lrb- a-LRB-",)
    assert names_of(found) == ["( ) [ ] { }", "a-LRB-"]


def test_a_file_of_tacred_without_gold_or_types_is_read(put):
    bare = {key: value for key, value in record().items() if key not in ("relation", "subj_type", "obj_type")}
    [found] = read_relations(put([bare]))
    assert (found.gold, found.tail) == (None, ())


tokens = st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1), min_size=1)


@given(tokens, st.data())
def test_a_name_is_its_tokens_joined(tmp_path_factory, tokens, data):
    places = st.integers(0, len(tokens) - 1)
    (subject, subject_end), (name, name_end) = spans = [
        sorted((data.draw(places), data.draw(places))) for _ in range(2)
    ]
    path = tmp_path_factory.getbasetemp() / "tacred.json"
    ends = {"subj_start": subject, "subj_end": subject_end, "obj_start": name, "obj_end": name_end}
    path.write_text(json.dumps([record(token=tokens, **ends)]))
    [found] = read_relations(path)
    assert names_of(found) == [" ".join(tokens[begin : end + 1]) for begin, end in spans]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "x: no instance in it"),
        ([{"id": "a"}], r"x: .*`\$\[0\]`"),
        ([record(), record()], "x: .*'e7', those of instance 1 and 2"),
        ([record(id="")], "x: instance 1 "),
        ([record(subj_end=11)], "x: instance e7: .*6 to 11, .*0 to 10"),
        ([record(obj_start=2)], "x: instance e7: .*2 to 1"),
        ([record(obj_start=-1)], "x: instance e7: .*-1 to 1"),
        ([record(token=[" "] * 7)], "x: instance e7: the subject is nothing but white space"),
    ],
)
def test_what_is_no_file_of_tacred_is_an_error_with_its_instance(put, content, place):
    with pytest.raises(SourceError, match=place):
        list(read_relations(put(content)))


def test_a_list_that_is_not_utf_8_is_an_error(tmp_path):
    (tmp_path / "x").write_bytes(json.dumps([record()]).encode().replace(b"Acme", b"Acm\xe9"))
    with pytest.raises(SourceError, match="x: "):
        list(read_relations(tmp_path / "x"))


# -- FewRel -----------------------------------------------------------------

BRIDGE = {
    "tokens": "The Blue Wonder spans the Elbe , and Blue Wonder is steel .".split(),
    "h": ["blue wonder", "Q462297", [[1, 2], [8, 9]]],
    "t": ["elbe", "Q1644", [[5]]],
}
SONG = {"tokens": ["Ö", "sings", "ß"], "h": ["ß", "Q2", [[2]]], "t": ["ö", "Q10", [[0]]]}


def test_the_head_is_the_first_name_and_the_tail_the_second_where_they_first_stand(put):
    path = put({"P177": [BRIDGE], "P364": [SONG, SONG]})
    assert is_fewrel(path)
    bridge, *songs = read_relations(path)
    text = " ".join(BRIDGE["tokens"])
    assert bridge == Example("P177-1", (text,), ((4, 15), (26, 30)), group="Q1644 Q462297", gold="P177")
    assert names_of(bridge) == ["Blue Wonder", "Elbe"]
    song = Example("P364-1", ("Ö sings ß",), ((8, 9), (0, 1)), group="Q10 Q2", gold="P364")
    assert songs == [song, song._replace(id="P364-2")]


def test_a_file_may_be_compressed_and_begin_with_a_relation_without_instances(tmp_path):
    path = tmp_path / "x.json.xz"
    path.write_bytes(lzma.compress(json.dumps({"P1": [], "P2": [SONG]}).encode()))
    assert is_fewrel(path) and [instance.gold for instance in read_relations(path)] == ["P2"]


OTHERS = [
    "", "[]", "{}", '{"text": "a"}', '{"P1": ["tokens"]}', '{"P1": [{"text": "a"}]}', '8001\t"a"',
    '{"P1": []}',
]  # fmt: skip


@pytest.mark.parametrize("content", OTHERS)
def test_what_begins_otherwise_is_another_layout(content, put):
    assert not is_fewrel(put(content))


def changed(role, **values):
    if role is None:
        return BRIDGE | values
    return BRIDGE | {role: [BRIDGE[role][0], BRIDGE[role][1], values["spans"]]}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"P1": [changed("h", spans=[])]}, r"instance P1-1: the head is tokens \[\]"),
        ({"P1": [changed("t", spans=[[]])]}, r"the tail is tokens \[\]"),
        ({"P1": [BRIDGE, changed("h", spans=[[1, 3]])]}, r"P1-2: the head is tokens \[1, 3\]"),
        ({"P1": [changed("t", spans=[[2, 1]])]}, r"tokens \[2, 1\]"),
        ({"P1": [changed("t", spans=[[12, 13]])]}, "the tail is tokens 12 to 13, .*0 to 12"),
        ({"P1": [changed("h", spans=[[-1, 0]])]}, "the head is tokens -1 to 0, .*0 to 12"),
        ({"P1": [changed(None, tokens=[" "] * 13)]}, "the head is nothing but white space"),
        ({"P1": [changed(None, tokens="text")]}, "got `str`"),
        ({"P1": [{"tokens": [], "h": ["a", "Q1", [[0]]]}]}, "`t`"),
        ({"P1": []}, "no instance in it"),
        ("{}", "no instance in it"),
        ('{"P1": [', "FewRel"),
        ('{"P1": ' + "[" * 5000, "FewRel"),
    ],
)
def test_what_is_no_file_of_fewrel_is_an_error(content, place, put):
    with pytest.raises(SourceError, match=place):
        list(read_relations(put(content)))


def test_instances_of_one_pair_of_entities_are_held_out_together(put):
    def instance(number, *, turned):
        names = ("h", ["a", f"Q{number}", [[0]]]), ("t", ["b", "Q0", [[1]]])
        roles = dict(names) if not turned else {"h": names[1][1], "t": names[0][1]}
        return {"tokens": ["a", "b"], **roles}

    relations = {"P1": [instance(number, turned=False) for number in range(1, 31)]}
    relations["P2"] = [instance(number, turned=True) for number in range(1, 31)]
    learn, held_out = hold_out(find_task("relation").read(put(relations)))
    assert (len(learn), len(held_out)) == (54, 6)
    assert not {example.group for example in learn} & {example.group for example in held_out}
    assert {example.gold for example in held_out} == {"P1", "P2"}
    without = [SONG | {"h": ["ß", "", [[2]]]}] * 30  # no keys of entities: each is a pair of its own
    examples = find_task("relation").read(put({"P1": without}))
    assert {example.group for example in examples} == {""} and len(hold_out(examples)[1]) == 3


def test_the_published_file_of_fewrel_is_read(shared_data):
    instances = list(read_relations(shared_data / "fewrel" / "val_wiki.json.xz"))
    assert len(instances) == 11_200 and len({instance.gold for instance in instances}) == 16
    assert names_of(instances[0])[0] == "Cape Girardeau Bridge"


# -- types of names ---------------------------------------------------------

CHOI = {
    "annot_id": "A:1",
    "left_context_token": ["In", "May", ","],
    "mention_span": "the old town",
    "right_context_token": ["burned", "."],
    "y_str": ["place", "location", "city"],
}
ZHANG = {
    "sent": "In May she sang .",
    "start": 7,
    "end": 10,
    "labels": ["person"],
    "ents": [["Q1", 3, 6, 0.5]],
}


def test_lines_are_read_with_the_general_types_only(put):
    other = CHOI | {"annot_id": "A:2", "y_str": ["city"], "left_context_token": []}
    first, second = read_types(put(lines_of(CHOI, other)))
    text = "In May , the old town burned ."
    assert first == Example("A:1", (text,), ((9, 21),), gold=frozenset({"place", "location"}))
    assert second == Example("A:2", ("the old town burned .",), ((0, 12),), gold=frozenset())
    assert names_of(first) == names_of(second) == ["the old town"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_is_read_over_however_many_lines_it_goes(put, indent):
    content = [ZHANG, ZHANG | {"labels": ["person", "singer"]}]
    first, second = read_types(put("\n" + json.dumps(content, indent=indent)))
    assert first == Example("1", ("In May she sang .",), ((7, 10),), gold=frozenset({"person"}))
    assert second == first._replace(id="2")


def test_a_span_is_without_white_space_at_its_ends(put):
    assert [one.marks for one in read_types(put([ZHANG | {"start": 6, "end": 11}]))] == [((7, 10),)]
    [one] = read_types(put(lines_of(CHOI | {"mention_span": " town "})))
    assert one.texts == ("In May ,  town  burned .",) and names_of(one) == ["town"]


def test_ids_are_those_of_the_data_and_each_is_there_once(put):
    without = {key: value for key, value in CHOI.items() if key != "annot_id"}
    content = lines_of(CHOI, without, without, CHOI | {"annot_id": 7})
    assert [one.id for one in read_types(put(content))] == ["A:1", "2", "3", "7"]
    with pytest.raises(SourceError, match=r":3: .*'A:1', those of line 1 and 3"):
        list(read_types(put(lines_of(CHOI, without, CHOI))))


def test_a_file_of_types_without_gold_is_read(put):
    for content in (
        lines_of({key: value for key, value in CHOI.items() if key != "y_str"}),
        json.dumps([{key: value for key, value in ZHANG.items() if key != "labels"}]),
    ):
        [one] = read_types(put(content))
        assert one.gold is None


words = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1)


@given(st.lists(words), st.lists(words, min_size=1), st.lists(words))
def test_both_kinds_of_file_say_the_same(tmp_path_factory, left, span, right):
    text, begin = " ".join([*left, *span, *right]), sum(len(word) + 1 for word in left)
    mention = " ".join(span)
    path = tmp_path_factory.getbasetemp() / "typed"
    contexts = {"left_context_token": left, "right_context_token": right}
    path.write_text(lines_of({"mention_span": mention, **contexts, "y_str": ["event"]}))
    [of_lines] = read_types(path)
    path.write_text(
        json.dumps([{"sent": text, "start": begin, "end": begin + len(mention), "labels": ["event"]}])
    )
    assert [of_lines] == list(read_types(path))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "x: no instance in it"),
        ("[]", "x: no instance in it"),
        (lines_of(CHOI, ZHANG), "x:2: "),
        (json.dumps([ZHANG, CHOI]), r"x: .*\$\[1\]"),
        (lines_of(CHOI | {"mention_span": " "}), "x:1: mention_span"),
        (json.dumps([ZHANG | {"end": 18}]), "x: instance 1: .*7 to 18, .*0 to 17"),
        (json.dumps([ZHANG | {"end": 7}]), "x: instance 1: .*7 to 7"),
        (json.dumps([ZHANG | {"start": -1}]), "x: instance 1: .*-1 to 10"),
        (json.dumps([ZHANG | {"start": 6, "end": 7}]), "x: instance 1: .*white space"),
    ],
)
def test_what_is_no_file_of_types_is_an_error_with_its_place(put, content, place):
    with pytest.raises(SourceError, match=place):
        list(read_types(put(content)))
