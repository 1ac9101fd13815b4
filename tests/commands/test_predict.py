"""`kgkit predict`, and models called in Python: answers to records of every task, in their order."""

import json
import shutil
import subprocess

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.records import ParsedRecord
from kgkit.evaluation.tasks import TASKS
from kgkit.methods import predicting
from tests.cli_helpers import read_documents, run, started
from tests.tiny_encoder import tiny_encoder

COUNT = 24
NOUNS = ("dog", "cat", "tree", "fruit")


def record(task, number):
    """Return a record of a task, with a field that no task uses."""
    noun, label = NOUNS[number % 4], str(number % 2)
    text = f"{'the ' * (number * 7 % 5 + 1)}{noun} eats"
    name = [text.index(noun), text.index(noun) + len(noun)]
    words = text.split()
    own = {
        "pair": {"text_a": text, "text_b": "a dog", "label": label},
        "ranking": {"qid": str(number // 2), "text_a": "it", "text_b": text, "label": label},
        "wic": {"text_a": text, "text_b": "a dog", "label": "FT"[number % 2]},
        "regression": {"text": text, "score": 10.0 + number % 4},
        "choice": {"context": text, "choices": ["a dog", "a cat", "the tree"], "label": number % 3},
        "tagging": {"tokens": words, "tags": ["O"] * (len(words) - 2) + ["B-X", "O"]},
        "relation": {"text": text, "marks": [name, [len(text) - 4, len(text)]], "label": f"r{label}(e1,e2)"},
        "typing": {"text": text, "marks": [name], "labels": [["person"], ["place"], []][number % 3]},
    }.get(task, {"text": text, "label": label})
    return {"id": f"x{number}", **own, "source": {"page": number}}


def jsonl(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


MODELS = [("knowbert", task) for task in TASKS] + [
    ("kbert", task) for task in ("classification", "tagging", "choice")
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def trained(home):
    """Return a function that returns the name of a model, which it has trained, and its file of data."""
    encoder = tiny_encoder(home / "encoder")

    def of(method, task):
        name, path = f"{method}-{task}", home / f"{task}.jsonl"
        if not (home / "models" / name).exists():
            path.write_text(jsonl(*(record(task, number) for number in range(COUNT))))
            kgkit.train(
                method, name=name, home=home, task=task, data=path, encoder=str(encoder), size=16, batch=8,
                epochs=30 if name == "kbert-tagging" else 1, lr=3e-3, lr_new=3e-2, bf16=False,
                control=True, device="cpu",
            )  # fmt: skip
        return name, path

    return of


@pytest.fixture(scope="module")
def opinions(trained):
    return trained("kbert", "classification")[0]


@pytest.fixture(scope="module")
def tags(trained):
    return trained("kbert", "tagging")[0]


@pytest.fixture
def predict(home):
    def predict(model, *args, given=b""):
        return run("predict", "--model", model, "--home", home, "--device", "cpu", *args, given=given)

    return predict


def answers(done):
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize(("method", "task"), MODELS)
def test_answers_are_those_of_evaluate_in_order_with_unknown_fields(method, task, trained, predict, tmp_path):
    model, path = trained(method, task)
    lines = answers(predict(model, path, "--batch", 3))
    done = run(
        "evaluate", "task", "--data", path, "--model", model, "--home", path.parent, "--device", "cpu",
        "--predictions", tmp_path / "answers",
    )  # fmt: skip
    assert done.code == 0, done.err
    expected = [line.split("\t") for line in (tmp_path / "answers").read_text().splitlines()]
    assert [line["id"] for line in lines] == [name for name, _ in expected]
    assert [line["source"] for line in lines] == [{"page": number} for number in range(COUNT)]
    for line, (_, answer) in zip(lines, expected, strict=True):
        if task == "regression":
            assert line["answer"] == pytest.approx(float(answer), rel=1e-5)
            assert "probabilities" not in line
        elif task == "ranking":
            assert line["probabilities"]["1"] == pytest.approx(float(answer), abs=1e-6)
        elif isinstance(line["answer"], list):
            assert line["answer"] == answer.replace(" ", ",").split(",") if answer else not line["answer"]
        else:
            assert str(line["answer"]) == answer
        shares = line.get("probabilities", [])
        assert all(0 <= share <= 1 for share in (shares.values() if isinstance(shares, dict) else shares))
    assert len({f"{line['answer']} {line.get('probabilities')}" for line in lines}) > 3  # not all are alike


@pytest.mark.slow
@pytest.mark.parametrize(("method", "task"), MODELS)
def test_a_model_in_python_answers_as_the_command_does(method, task, home, trained, predict):
    model, path = trained(method, task)
    lines = answers(predict(model, path))
    with kgkit.open_model(model, home=home, device="cpu") as predictor:
        records = [record(task, number) for number in range(COUNT)]
        for answer, line in zip(predictor.predict(records), lines, strict=True):
            assert _plain(answer) == [
                line["id"], line["answer"], line.get("probabilities"), line.get("tokens", []),
            ]  # fmt: skip


def _plain(answer):
    """Return a prediction as JSON has it."""
    choice = sorted(answer.answer) if isinstance(answer.answer, frozenset) else answer.answer
    return json.loads(json.dumps([answer.id, choice, answer.probabilities, answer.tokens]))


def test_tags_have_the_spans_of_tokens_and_of_names(tags, predict):
    [line] = answers(predict(tags, given=b"the the dog eats\n"))
    assert line["text"] == "the the dog eats" and line["answer"][:3] == ["O", "O", "B-X"]
    assert line["tokens"] == [[0, 3], [4, 7], [8, 11], [12, 16]]
    assert line["mentions"][0] == {"start": 8, "end": 11, "text": "dog", "type": "X"}
    assert len(line["mentions"]) == line["answer"].count("B-X")
    assert len(line["probabilities"]) == 4


def test_a_blank_text_has_no_tags_and_those_around_it_keep_theirs(tags, predict):
    lines = answers(predict(tags, given=jsonl({"text": ""}, {"text": "the dog"}, {"text": " "}).encode()))
    assert [(line["id"], len(line["answer"])) for line in lines] == [("1", 0), ("2", 2), ("3", 0)]
    assert lines[0] == {
        "id": "1", "answer": [], "probabilities": [], "text": "", "tokens": [], "mentions": [],
    }  # fmt: skip
    [alone] = answers(predict(tags, given=b'{"text": "the dog"}\n'))
    assert {**alone, "id": "2"} == lines[1]


def test_spans_are_code_points_of_the_text_that_tokens_make(tags, predict):
    [line] = answers(predict(tags, given=jsonl({"tokens": ["𝔸𝔸", "the", "dog", "eats"]}).encode()))
    assert line["text"] == "𝔸𝔸 the dog eats" and line["tokens"][2] == [7, 10]
    assert [line["text"][start:end] for start, end in line["tokens"]] == ["𝔸𝔸", "the", "dog", "eats"]
    assert all(line["text"][one["start"] : one["end"]] == one["text"] for one in line["mentions"])


def test_lines_of_tags_are_documents_with_mentions(tags, predict, tmp_path):
    (tmp_path / "tags.jsonl").write_text(predict(tags, given=b"the the dog eats\n").out)
    [document] = read_documents([tmp_path / "tags.jsonl"], "auto")
    assert (document.mentions[0].start, document.mentions[0].text) == (8, "dog")


def test_texts_pairs_tokens_dictionaries_and_examples_are_taken(home, opinions, tags, trained):
    with kgkit.open_model(opinions, home=home, device="cpu") as model:
        text, other = "the dog eats", "a cat"
        forms = [[text, other], [{"text": text, "x": 1}, {"text": other}]]
        forms += [[Example("1", (text,)), Example("2", (other,))], iter([text, other])]
        first, *rest = ([*model(form)] for form in forms)
        assert [answer.id for answer in first] == ["1", "2"] and all(more == first for more in rest)
        assert [*model([])] == []
        pairs = [*model([(text, other)])]
        assert pairs == [*model([{"text_a": text, "text_b": other}])]
        with pytest.raises(UsageError, match=r"records are a list, and this is one str: model\(\[record\]\)"):
            model(text)
        with pytest.raises(UsageError, match="batch is 0"):
            model([text], batch=0)
        with pytest.raises(SourceError, match="record 2: there is no text"):
            [*model([text, {"x": 1}])]
    with kgkit.open_model(tags, home=home, device="cpu") as model:
        assert [*model([["the", "dog", "eats"]])] == [*model(["the dog eats"])]


def test_answers_come_a_block_at_a_time_and_the_rest_is_not_read(home, opinions):
    taken = []

    def texts():
        for number in range(1000):
            taken.append(number)
            yield "the dog eats"

    with kgkit.open_model(opinions, home=home, device="cpu") as model:
        given = model(texts(), batch=2)
        assert taken == []  # nothing before it is asked for
        assert next(given).id == "1" and len(taken) == 2
        assert [next(given).id for _ in range(9)][-1] == "10" and len(taken) == 10


def test_blocks_grow_to_32_batches_and_end_where_texts_are_long(monkeypatch):
    def parsed(*lengths):
        return [ParsedRecord(Example("1", ("a" * length,)), {}) for length in lengths]

    def sizes(*lengths, batch):
        return [len(block) for block in predicting.blocks(iter(parsed(*lengths)), batch)]

    assert sizes(*[1] * 200, batch=2) == [2, 8, 32, 64, 64, 30]
    assert sizes(batch=2) == []
    monkeypatch.setattr(predicting, "_MOST_CHARACTERS", 10)
    assert sizes(1, 20, 4, 4, 4, 1, batch=4) == [2, 3, 1]


@pytest.fixture
def own(home, opinions, tmp_path):
    """Return a home whose only model is a copy of one, for it to be removed."""
    shutil.copytree(home / "models" / opinions, tmp_path / "own" / "models" / opinions, symlinks=True)
    return tmp_path / "own"


def test_a_model_that_is_removed_while_it_answers_answers_to_the_end(own, opinions):
    records = [record("classification", number) for number in range(COUNT)]
    with kgkit.open_model(opinions, home=own, device="cpu") as model:
        expected = [*model(records, batch=2)]
        answering = model(iter(records), batch=2)
        first = next(answering)
        assert run("models", "rm", opinions, "--home", own).code == 0
        assert [first, *answering] == expected
    assert [*(own / "models").glob(f"{opinions}*")] == []


def test_lines_columns_and_objects_are_told_apart_or_named(opinions, predict):
    def ids(text, *options):
        return [line["id"] for line in answers(predict(opinions, *options, given=text.encode()))]

    assert ids("the dog\n\na cat\n") == ["1", "3"]  # numbers of lines
    assert ids("text_a\tid\nthe dog\tp\na cat\tq\n") == ["p", "q"]
    assert ids(jsonl({"text": "the dog", "id": 7})) == ["7"]
    assert ids('{"text": "a"}\ta\n', "--format", "lines") == ["1"]
    assert ids("text\na cat\n", "--format", "lines") == ["1", "2"]
    assert ids('{"text":\t1\n', "--format", "tsv") == ["1"]
    done = predict(opinions, "--format", "jsonl", given=b"a cat\n")
    assert done.code == 1 and done.err.startswith("error: -:1: expected {") and done.out == ""


def test_the_fields_of_columns_are_carried_through(opinions, predict, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("shop\ttext_a\tlabel\nnorth\tthe dog\t1\nsouth\ta cat\t0\n")
    lines = answers(predict(opinions, path))
    assert [list(line) for line in lines] == [["id", "answer", "probabilities", "shop"]] * 2
    assert [line["shop"] for line in lines] == ["north", "south"]


def test_of_several_files_each_line_names_its_own(opinions, predict, tmp_path):
    (tmp_path / "a.txt").write_text("the dog\n")
    (tmp_path / "b.txt").write_text("")
    lines = answers(predict(opinions, tmp_path / "a.txt", "-", tmp_path / "b.txt", given=b"a cat\n"))
    assert [(line["file"], line["id"]) for line in lines] == [(str(tmp_path / "a.txt"), "1"), ("-", "1")]


@pytest.mark.parametrize("given", [b"", b"\n \n"])
def test_to_nothing_there_is_no_answer(opinions, predict, tmp_path, given):
    assert predict(opinions, "--quiet", given=given) == (0, "", "")
    (tmp_path / "empty").write_bytes(given)
    done = predict(opinions, tmp_path / "empty", "-o", tmp_path / "answers")
    assert (done.code, done.err) == (0, f"answers to 0 records: {tmp_path / 'answers'}\n")
    assert (tmp_path / "answers").read_bytes() == b""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (jsonl({"text": "a cat"}, {"txt": 1}), "bad:2: there is no text"),
        (jsonl({"text": "a cat"}) + "{\n", "bad:2: expected {"),
        ("text_a\tx\na cat\t1\na cat\n", "bad:3: expected 2 tab-separated fields (text_a, x), found 1"),
        ("a cat\n\udcff\n", "bad:2: not UTF-8"),
        (
            jsonl({"text": "a cat"}, {"text": "a", "answer": 1}),
            "bad:2: the record has a field 'answer', as",
        ),
    ],
)
def test_a_bad_line_is_one_error_and_no_half_of_a_file(opinions, predict, tmp_path, given, message):
    (tmp_path / "bad").write_bytes(given.encode("utf-8", "surrogateescape"))
    done = predict(opinions, tmp_path / "bad", "-o", tmp_path / "answers", "--batch", 1, "--quiet")
    assert done.code == 1 and done.out == ""
    assert done.err.startswith("error: ") and message in done.err and done.err.count("error: ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_a_missing_model_is_one_sentence(predict):
    done = predict("nope", given=b"a cat\n")
    assert done.code == 3 and done.out == "" and done.err.count("\n") == 1
    assert "'nope'" in done.err


def test_a_missing_file_is_one_sentence(opinions, predict, tmp_path):
    done = predict(opinions, tmp_path / "nope")
    assert (done.code, done.out, done.err) == (3, "", f"error: no file {tmp_path / 'nope'}\n")


def test_a_model_that_answers_no_task_says_what_it_does(predict):
    done = predict("wsd-minilm", given=b"a cat\n")
    assert done.code == 2 and done.out == ""
    assert "wsd-minilm is a linker (type head), and answers no task: link with" in done.err


def test_bfloat16_is_asked_for(opinions, predict):
    [plain] = answers(predict(opinions, given=b"the dog eats\n"))
    [rounded] = answers(predict(opinions, "--bf16", given=b"the dog eats\n"))
    assert plain["probabilities"] != rounded["probabilities"]
    assert plain["probabilities"]["0"] == pytest.approx(rounded["probabilities"]["0"], abs=0.1)


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_ends_it_in_silence(opinions, home, tmp_path):
    (tmp_path / "many").write_text("the dog eats\n" * 3000)
    arguments = ("predict", "--model", opinions, "--home", home, "--device", "cpu", "--batch", 4)
    running = started(*arguments, tmp_path / "many", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert json.loads(running.stdout.readline())["id"] == "1"
    running.stdout.close()
    assert running.wait(300) == 0 and running.stderr.read() == b""
    running.stderr.close()


def test_examples_that_a_task_cannot_read_are_told_by_their_ids(home, opinions, tags, trained):
    with kgkit.open_model(tags, home=home, device="cpu") as model:
        with pytest.raises(UsageError, match="example x has no tokens, which the task tagging needs"):
            [*model([Example("x", ("a cat",))])]
        with pytest.raises(UsageError, match=r"batch is 2\.5; it is a whole number"):
            model(["a cat"], batch=2.5)
    with (
        kgkit.open_model(trained("kbert", "choice")[0], home=home, device="cpu") as model,
        pytest.raises(UsageError, match="example x has no choices, which the task choice needs"),
    ):
        [*model([Example("x", ("a cat",))])]
    with (
        kgkit.open_model(opinions, home=home, device="cpu") as model,
        pytest.raises(UsageError, match="record 2 is a dict, and the first an Example"),
    ):
        [*model([Example("x", ("a cat",)), {"text": "a"}])]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "tagging"}, "answers of its classifier are of the kind 'label', and not those of the task"),
        ({"task": "nope"}, "not those of the task 'nope'"),
        ({"size": 10**12}, "a setting in model.json is out of range: trees of 1000000000000 pieces"),
    ],
)
def test_a_manifest_that_does_not_fit_its_model_is_damage(
    changes, message, home, opinions, predict, tmp_path
):
    model = tmp_path / "model"
    shutil.copytree((home / "models" / opinions / "current").resolve(), model)
    manifest = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps(manifest | changes))
    done = predict(model, given=b"a cat\n")
    assert done.code == 1 and message in done.err and done.err.count("error: ") == 1
