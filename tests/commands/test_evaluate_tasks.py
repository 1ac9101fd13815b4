"""`kgkit evaluate task`, under the names of tasks too: of models that have hardly learnt."""

import json
import shutil

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.catalog import Catalog
from kgkit.evaluation.task_answers import read_answers
from kgkit.evaluation.tasks import find_task
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.manifest import MANIFEST
from tests.cli_helpers import run
from tests.tiny_encoder import POSITIONS, tiny_encoder

COUNT = 12
NAMES = ("dog", "cat", "tree", "company")


def tabs(*labels):
    """Texts and labels, if there are any."""
    texts = [f"the {NAMES[n % 4]} eats fruit" for n in range(COUNT)]
    if not labels:
        return "\n".join(["text", *texts]) + "\n"
    return "text\tlabel\n" + "".join(f"{text}\t{labels[n % len(labels)]}\n" for n, text in enumerate(texts))


def pairs():
    return "".join(
        f"{NAMES[n % 4]}\tN\t1-1\tthe {NAMES[n % 4]} grows\ta {NAMES[n % 4]} eats\n" for n in range(COUNT)
    )


def semeval():
    labels = ("Owner-Thing(e1,e2)", "Owner-Thing(e2,e1)", "Part-Whole(e1,e2)", "Other")
    return "".join(
        f'{n + 1}\t"the <e1>{NAMES[n % 4]}</e1> eats the <e2>fruit</e2>"\n{labels[n % 4]}\n\n'
        for n in range(COUNT)
    )


def tacred():
    kinds = ("DOG", "CAT", "DOG", "COMPANY")
    return json.dumps(
        [
            {
                "id": f"t{n}", "token": ["the", NAMES[n % 4], "eats", "fruit"], "subj_start": 1,
                "subj_end": 1, "obj_start": 3, "obj_end": 3, "subj_type": kinds[n % 4], "obj_type": "FRUIT",
                "relation": ("eats:fruit", "no_relation")[n % 2],
            }
            for n in range(COUNT)
        ]
    )  # fmt: skip


def types():
    holds = (["object"], ["person"], ["object", "entity"], ["organization", "group"])
    return "".join(
        json.dumps(
            {
                "annot_id": f"c{n}", "left_context_token": ["the"], "mention_span": NAMES[n % 4],
                "right_context_token": ["grows"], "y_str": holds[n % 4],
            }
        )
        + "\n"
        for n in range(COUNT)
    )  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Examples of each task; of `classification` also without labels, and with some of them."""
    folder = tmp_path_factory.mktemp("files")
    content = {
        "wic.txt": pairs(),
        "wic.data.txt": pairs(),
        "wic.gold.txt": "T\nF\n" * (COUNT // 2),
        "semeval.txt": semeval(),
        "tacred.json": tacred(),
        "types.jsonl": types(),
        "texts.tsv": tabs("no", "yes"),
        "others.tsv": tabs("yes", "yes", "no"),
        "bare.tsv": tabs(),
        "some.jsonl": '{"id": "a", "text": "a dog", "label": "yes"}\n{"id": "b", "text": "a cat"}\n'
        '{"id": "c", "text": "a tree"}\n',
        "plain.txt": "the dog barks\nit is big\n\na cat eats\nit grows\n\nmany trees\nthe city grows\n",
    }
    for name, text in content.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in content}


@pytest.fixture(scope="module")
def home(tmp_path_factory, files):
    """A home with a model of each task, without knowledge bases: not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    encoder = tiny_encoder(folder / "encoder", mask=True)
    made = {
        "wic": ("wic", "wic.data.txt"),
        "relation": ("relation", "semeval.txt"),
        "tacred": ("relation", "tacred.json"),
        "typing": ("typing", "types.jsonl"),
        "classification": ("classification", "texts.tsv"),
    }
    for name, (task, data) in made.items():
        done = run(
            "train", "knowbert", "--task", task, "--data", files[data], "--name", name, "--control",
            "--encoder", encoder, "--epochs", 1, "--batch", 4, "--lr", 5e-3, "--lr-new", 5e-3, "--size",
            POSITIONS, "--device", "cpu", "--home", folder / "home",
        )  # fmt: skip
        assert done.code == 0, done.err
    language = shutil.copytree(
        find_trained(Home(folder / "home"), "wic"), folder / "home" / "models" / "language"
    )
    told = json.loads((language / MANIFEST).read_text())
    (language / MANIFEST).write_text(json.dumps(told | {"task": "mlm", "name": "language"}))
    return Home(folder / "home")


@pytest.fixture
def evaluate(home, files):
    """Run `kgkit evaluate task ARGS` with a model, where a file may be called by its name."""

    def of(model, *args):
        given = [files.get(arg, arg) for arg in args]
        common = ("--model", model, "--home", home.path, "--device", "cpu")
        return run("evaluate", "task", *given, *common)

    return of


def answers_in(path):
    """Return the answers that were written of one set, by their ids."""
    return dict(line.split("\t") for line in path.read_text().splitlines())


# -- one set ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "model", "data", "gold", "metrics"),
    [
        ("wic", "wic", "wic.txt", "wic.gold.txt", ["accuracy"]),
        ("relation", "relation", "semeval.txt", None, ["macro_f1", "accuracy"]),
        ("relation", "tacred", "tacred.json", None, ["f1", "precision", "recall"]),
        ("typing", "typing", "types.jsonl", None, ["f1", "precision", "recall"]),
        ("classification", "classification", "texts.tsv", None, ["accuracy", "matthews", "auc"]),
    ],
)
def test_what_is_told_is_the_score_of_the_answers(
    home, files, evaluate, tmp_path, task, model, data, gold, metrics
):
    place, more = tmp_path / "answers.txt", ("--gold", gold) if gold else ()
    done = evaluate(model, "--data", data, *more, "--predictions", place, "--json")
    assert done.code == 0, done.err
    row = find_task(task)
    examples = row.read(files[data], files[gold] if gold else None)
    labels = [*row.labels(examples), *(("T", "F") if task == "wic" else ())]
    [answers] = read_answers(place, row, {"one": examples}, labels).values()
    wanted = row.score(examples, answers, labels)
    name, told = data.partition(".")[0], json.loads(done.out)
    [one] = told.pop("sets")
    assert told == {"model": model, "task": task}
    assert [one.pop(key) for key in ("name", "data", "examples")] == [name, str(files[data]), COUNT]
    wanted |= {metric: one[metric] for metric in ("auc",) if metric in one}  # needs probabilities
    assert one == pytest.approx(wanted) and list(one) == metrics  # the official one first
    assert done.err == f"answers to {COUNT} examples: {place}\n"

    table = evaluate(model, "--data", data, *more, "--batch", 1, "--quiet")
    heading, row = (line.split("\t") for line in table.out.splitlines())
    assert heading == ["data", "examples", *(metric.replace("_", " ") for metric in wanted)]
    assert row == [name, str(COUNT), *(f"{100 * value:.2f}" for value in wanted.values())]
    assert (table.code, table.err) == (0, "")

    with Catalog.open(home) as catalog:
        last = next(iter(catalog.runs(model)))
        assert {(score.task, score.dataset, score.metric): score.n for score in last.scores} == {
            (task, name, metric): COUNT for metric in wanted
        }


# -- several sets, and sets without labels ----------------------------------


def test_answers_of_several_sets_stand_behind_the_sets_names(files, evaluate, tmp_path):
    place = tmp_path / "answers.txt"
    args = ("--data", "texts.tsv", "--data", "others.tsv", "--predictions", place)
    done = evaluate("classification", *args)
    assert done.code == 0, done.err
    fields = [line.split("\t") for line in place.read_text().splitlines()]
    ids = [str(number) for number in range(2, COUNT + 2)]
    assert [one[:2] for one in fields] == [[name, one] for name in ("texts", "others") for one in ids]
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[:2] for row in rows] == [["data", "examples"], ["texts", "12"], ["others", "12"]]
    evaluate("classification", "--data", "others.tsv", "--predictions", tmp_path / "alone.txt")
    assert answers_in(tmp_path / "alone.txt") == {
        one: label for name, one, label in fields if name == "others"
    }


def test_a_set_without_labels_is_answered_and_not_scored(files, evaluate, tmp_path):
    place = tmp_path / "answers.txt"
    args = ("--data", "bare.tsv", "--data", "texts.tsv", "--predictions", place)
    done = evaluate("classification", *args, "--json")
    assert done.code == 0, done.err
    bare, texts = json.loads(done.out)["sets"]
    assert bare == {"name": "bare", "data": str(files["bare.tsv"]), "examples": COUNT}
    assert texts["data"] == str(files["texts.tsv"]) and "accuracy" in texts
    assert "not scored, as the examples have no labels: bare\n" in done.err
    assert len(place.read_text().splitlines()) == 2 * COUNT
    table = evaluate("classification", *args)
    assert [line.split("\t")[0] for line in table.out.splitlines()] == ["data", "texts"]
    alone = evaluate("wic", "--data", "wic.txt", "--predictions", place)
    assert (alone.code, alone.out) == (0, "") and set(answers_in(place).values()) <= {"T", "F"}


def test_relations_of_two_kinds_have_columns_of_their_own(evaluate, files, tmp_path):
    some = json.loads(files["tacred.json"].read_text())
    some[0]["relation"] = "Other"  # else no label of the file is one of the model's
    both = tmp_path / "both.json"
    both.write_text(json.dumps(some))
    done = evaluate("relation", "--data", "semeval.txt", "--data", both)
    assert done.code == 0, done.err
    heading, first, second = (line.split("\t") for line in done.out.splitlines())
    assert heading == ["data", "examples", "macro f1", "accuracy", "f1", "precision", "recall"]
    assert [bool(cell) for cell in first] == [True] * 4 + [False] * 3
    assert [bool(cell) for cell in second] == [True] * 2 + [False] * 2 + [True] * 3


def test_answers_are_there_even_if_they_cannot_be_scored(evaluate, files, tmp_path):
    place = tmp_path / "answers.txt"
    done = evaluate("tacred", "--data", "semeval.txt", "--predictions", place)
    assert (done.code, done.out) == (2, "") and done.err.endswith(
        f"error: none of the labels of {files['semeval.txt']} (Other, Owner-Thing(e1,e2), "
        "Owner-Thing(e2,e1), Part-Whole(e1,e2)) is one that the model tacred tells "
        "(eats:fruit, no_relation)\n"
    )
    assert set(answers_in(place).values()) <= {"eats:fruit", "no_relation"}


# -- beside another system --------------------------------------------------

TWICE = (("wic", "wic.txt", ("--gold", "wic.gold.txt"), "accuracy"),
         ("relation", "semeval.txt", (), "macro_f1"),
         ("tacred", "tacred.json", (), "f1"),
         ("typing", "types.jsonl", (), "f1"),
         ("classification", "texts.tsv", (), "accuracy"))  # fmt: skip


@pytest.mark.parametrize(("model", "data", "more", "metric"), TWICE)
def test_a_model_does_not_differ_from_its_own_answers(evaluate, tmp_path, model, data, more, metric):
    path = tmp_path / "own.txt.gz"
    args = ("--data", data, *more, "--json")
    assert evaluate(model, *args, "--predictions", path).code == 0
    done = evaluate(model, *args, "--versus", path)
    assert done.code == 0, done.err
    [scored] = json.loads(done.out)["sets"]
    assert [*scored["versus"]] == [metric]
    score = scored[metric]
    assert scored["versus"][metric] == {
        "score": pytest.approx(score), "versus": pytest.approx(score), "difference": 0,
        "interval": [0, 0], "p": 1,
    }  # fmt: skip


def test_another_system_is_compared_set_by_set(evaluate, files, tmp_path):
    gold = {
        name: [line.split("\t")[1] for line in files[f"{name}.tsv"].read_text().splitlines()[1:]]
        for name in ("texts", "others")
    }
    other = tmp_path / "other.txt"
    other.write_text(
        "".join(f"{name}\t{n}\t{label}\n" for name, own in gold.items() for n, label in enumerate(own, 2))
    )
    args = ("--data", "texts.tsv", "--data", "others.tsv", "--versus", other)
    done = evaluate("classification", *args, "--json")
    assert done.code == 0, done.err
    for scored in json.loads(done.out)["sets"]:
        own = scored["versus"]["accuracy"]
        assert (own["versus"], own["score"]) == (1, scored["accuracy"])
        assert own["difference"] == pytest.approx(scored["accuracy"] - 1)
        assert own["interval"][0] <= own["difference"] <= own["interval"][1] and 0 < own["p"] <= 1
        wrong = round(COUNT * (1 - scored["accuracy"]))  # all against the model, or all for it
        assert own["p"] == pytest.approx(min(1, 2 / 2**wrong))
    table = [line.split("\t") for line in evaluate("classification", *args).out.splitlines()]
    rows = table[table.index(["data", "metric", "versus", "score", "difference", "95 %", "p"]) + 1 :]
    assert [row[:3] for row in rows] == [[name, "accuracy", "100.00"] for name in gold]


def lines_of(count=COUNT, answer="yes"):
    return [f"{n}\t{answer}\n" for n in range(2, count + 2)]


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        ([], 1, "other.txt: no answer in it"),
        (lines_of(COUNT - 2), 2, "2 of the 12 examples of texts, the first is 12"),
        ([*lines_of(), "99\tyes\n"], 1, "other.txt:13: no example of texts has the id '99'"),
        ([*lines_of(), "3\tno\n"], 1, "other.txt:13: the id '3'"),
        ([*lines_of()[:-1], "13\tperhaps\n"], 1, "other.txt:12: the answer to '13' is 'perhaps'"),
        (["texts\t2\tyes\n"], 1, "other.txt:1: expected ID<tab>ANSWER, found 3 fields"),
        (["2 yes\n"], 1, "other.txt:1: expected ID<tab>ANSWER, found 1 fields"),
        (["\xff"], 1, "other.txt:1: not UTF-8"),
        (None, 3, "no file"),
    ],
)  # fmt: skip
def test_a_file_that_has_no_answers_to_the_examples_is_refused(evaluate, tmp_path, lines, code, message):
    other = tmp_path / "other.txt"
    if lines is not None:
        other.write_text("".join(lines), encoding="latin-1")
    out = tmp_path / "out.txt"
    done = evaluate("classification", "--data", "texts.tsv", "--versus", other, "--predictions", out)
    assert (done.code, done.out) == (code, ""), done.err
    assert message in done.err and not out.exists()


def test_the_set_of_an_answer_has_a_name_of_the_data(evaluate, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("else\t2\tyes\n")
    done = evaluate("classification", "--data", "texts.tsv", "--data", "others.tsv", "--versus", other)
    assert (done.code, done.out) == (1, "")
    assert "other.txt:1: no set is called 'else', they are texts, others" in done.err


def test_answers_are_not_written_over_those_that_they_are_compared_with(evaluate, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("".join(lines_of()))
    done = evaluate("classification", "--data", "texts.tsv", "--versus", other, "--predictions", other)
    assert done.code == 2 and "other.txt is one of the files to read; write to another file" in done.err
    done = evaluate(
        "classification", "--data", "bare.tsv", "--versus", other, "--predictions", tmp_path / "o"
    )
    assert done.code == 2 and "no labels, so there is nothing to compare with" in done.err


# -- what is refused --------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "args", "code", "said"),
    [
        ("language", ("--data", "types.jsonl"), 2, "language"),
        ("nope", ("--data", "semeval.txt"), 3,
         "no predictor named 'nope'; there are: classification, relation, tacred, typing, wic"),
        ("./nope", ("--data", "types.jsonl"), 3, "no model in nope: a model's folder has a"),
        ("wic", ("--data", "wic.txt", "--data", "bare.tsv", "--gold", "wic.gold.txt"), 2,
         "files of data: 2, files of gold: 1; name a file"),
        ("wic", ("--data", "wic.txt", "--gold", "no.txt"), 3, "no file no.txt"),
        ("wic", ("--data", "wic.txt"), 2,
         "nothing to score: name labels with --gold, or a file for the answers with --predictions"),
        ("classification", ("--data", "bare.tsv"), 2,
         "nothing to score: name a file for the answers with --predictions"),
        ("classification", ("--data", "some.jsonl", "--predictions", "OUT"), 2,
         "some.jsonl: 2 of 3 examples have no label, the first is b: give each a label, or leave them out"),
        ("classification", ("--data", "texts.tsv", "--data", "texts.tsv"), 2,
         "texts.tsv is named twice with --data: once will do"),
        ("classification", ("--data", "no.tsv"), 3, "no file no.tsv"),
        ("classification", ("--data", "texts.tsv", "--predictions", "texts.tsv"), 2,
         "is one of the files to read; write to another file"),
        ("relation", ("--data", "types.jsonl"), 1, "types.jsonl:1: there is no text"),
        ("classification", ("--data", "texts.tsv", "--gold", "wic.gold.txt"), 2,
         "wic.gold.txt"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_in_one_line_before_anything_is_written(
    evaluate, files, tmp_path, model, args, code, said
):
    before = {path: path.read_bytes() for path in files.values()}
    done = evaluate(model, *(tmp_path / "out.txt" if arg == "OUT" else arg for arg in args))
    assert (done.code, done.out) == (code, ""), done.err
    assert said in done.err
    assert not (tmp_path / "out.txt").exists()
    assert before == {path: path.read_bytes() for path in files.values()}
