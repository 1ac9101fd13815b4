"""E-BERT on relations: rows that differ in their knowledge alone, and FewRel divided by pairs of entities."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from benchmarks import answers, ebert_relations, fine_tuning
from kgkit.evaluation.tasks import find_task

SENTENCES = (
    "<e1>Rain</e1> causes <e2>floods</e2>.", "The <e1>wheel</e1> of the <e2>car</e2>.",
    "<e1>Smoke</e1> comes from <e2>fire</e2>.", "A <e1>leaf</e1> of a <e2>tree</e2>.",
)  # fmt: skip
LABELS = "Cause-Effect(e1,e2)", "Component-Whole(e1,e2)"


def write_semeval(path):
    blocks = [
        f'{number}\t"{sentence}"\n{LABELS[number % 2]}\nComment:\n'
        for number, sentence in enumerate(SENTENCES, start=1)
    ]
    path.write_text("\n".join(blocks) + "\n")


def instance(head, tail, *tokens):
    return {
        "tokens": list(tokens),
        "h": [tokens[0], head, [[0]]], "t": [tokens[-1], tail, [[len(tokens) - 1]]],
    }  # fmt: skip


@pytest.fixture
def trained(monkeypatch):
    commands = []

    def predict(path, home, training, test):
        commands.append(training)
        examples = find_task(training[training.index("--task") + 1]).read(test)
        wrong = 0 if "--kb" in training else 2
        labels = [LABELS[0] if number < wrong else each.gold for number, each in enumerate(examples)]
        path.write_text(
            "".join(f"{each.id}\t{label}\n" for each, label in zip(examples, labels, strict=True))
        )

    monkeypatch.setattr(answers, "train_and_predict", predict)
    return commands


def test_rows_differ_in_what_is_read_of_entities_alone(tmp_path, trained):
    """The guard of the comparison: the control has the same examples, seed and options as every other row."""
    write_semeval(tmp_path / "all.txt")
    files = fine_tuning.TaskFiles("relation", (tmp_path / "train.txt",), tmp_path / "all.txt")
    rows = ebert_relations.rows_of("semeval")
    trainings = fine_tuning.Trainings(tmp_path, tmp_path, "ebert", files, ["--epochs", "3"])
    table = fine_tuning.score_table(trainings, rows, [0, 1], "E-BERT", "")

    rest = set()
    for command, options in zip(trained, (row for row in rows.values() for _ in range(2)), strict=True):
        own = command.index(options[0])
        assert command[own : own + len(options)] == options
        rest.add((*command[:own], *command[own + len(options) :]))
    assert len(trained) == 4 and len(rest) == 2  # one for each seed
    assert [row[0] for row in table.rows] == [
        "plain",
        "concat",
    ]
    assert "--control" in trained[0] and not any("--control" in command for command in trained[2:])


def test_macro_f1_is_the_first_score_and_p_is_of_right_answers(tmp_path, trained):
    write_semeval(tmp_path / "all.txt")
    files = fine_tuning.TaskFiles("relation", (tmp_path / "train.txt",), tmp_path / "all.txt")
    trainings = fine_tuning.Trainings(tmp_path, tmp_path, "ebert", files, [])
    rows = {name: ebert_relations.rows_of("semeval")[name] for name in ("plain", "concat")}
    table = fine_tuning.score_table(trainings, rows, [0], "E-BERT", "")
    assert table.columns == ("model", "macro_f1", "p", "p over seeds", "seeds", "accuracy")
    plain, concat = table.rows
    # of four answers the first is wrong: F1 of 2 / 3 and 4 / 5
    assert plain == ["plain", "73.33", "", "", "73.33", "75.00"]
    assert concat[0] == "concat" and concat[3:] == ["", "100.00", "100.00"] and float(concat[2]) == 1


def test_answers_are_kept_by_all_that_decides_them(tmp_path, trained):
    write_semeval(tmp_path / "all.txt")
    files = fine_tuning.TaskFiles("relation", (tmp_path / "train.txt",), tmp_path / "all.txt")
    row = ["--control"]
    fine_tuning.Trainings(tmp_path, tmp_path, "ebert", files, ["--lr", "1"]).predictions(row, 0)
    fine_tuning.Trainings(tmp_path, tmp_path, "ebert", files, ["--lr", "1"]).predictions(row, 0)
    assert len(trained) == 1
    fine_tuning.Trainings(tmp_path, tmp_path, "ebert", files, ["--lr", "2"]).predictions(row, 0)
    fine_tuning.Trainings(tmp_path, tmp_path, "knowbert", files, ["--lr", "1"]).predictions(row, 0)
    other = files._replace(data=(tmp_path / "other.txt",))
    fine_tuning.Trainings(tmp_path, tmp_path, "ebert", other, ["--lr", "1"]).predictions(row, 0)
    assert len(trained) == 4


def test_no_pair_of_entities_of_fewrel_is_both_learnt_and_asked(tmp_path):
    instances = [instance(f"Q{a}", f"Q{b}", "x", "of", "y") for a in range(8) for b in range(8) if a != b]
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"P1": instances, "P2": instances[::2]}))
    files = ebert_relations.split_fewrel(path, tmp_path)
    training, test = (find_task("relation").read(file) for file in (files.data[0], files.test))
    assert len(training) + len(test) == len(instances) * 3 // 2
    pairs = [{frozenset(each.group.split()) for each in part} for part in (training, test)]
    assert pairs[0] and pairs[1] and not pairs[0] & pairs[1]
    assert ebert_relations.is_test_pair("Q1", "Q2") == ebert_relations.is_test_pair("Q2", "Q1")


def test_the_share_of_names_counts_both_names_of_each_example(tmp_path):
    records = [{"key": "rain", "label": "rain", "aliases": ["Rain"]}, {"key": "car", "label": "car"}]
    kgkit.build_kb("jsonl", records, name="weather", home=tmp_path / "home")
    write_semeval(tmp_path / "all.txt")
    examples = find_task("relation").read(tmp_path / "all.txt")
    with kgkit.open_kb("weather", home=tmp_path / "home") as kb:
        assert ebert_relations.share_of_names(examples, kb) == 2 / 8


def test_another_build_of_the_knowledge_base_or_other_data_are_trained_again(tmp_path, trained):
    write_semeval(tmp_path / "all.txt")
    files = fine_tuning.TaskFiles("relation", (tmp_path / "all.txt",), tmp_path / "all.txt")
    row = ["--kb", "animals"]

    def predict():
        fine_tuning.Trainings(tmp_path, tmp_path, "ebert", files, []).predictions(row, 0)
        return len(trained)

    kgkit.build_kb("jsonl", [{"key": "dog", "label": "dog"}], name="animals", home=tmp_path)
    assert (predict(), predict()) == (1, 1)
    kgkit.build_kb("jsonl", [{"key": "cat", "label": "cat"}], name="animals", home=tmp_path)
    assert predict() == 2
    with (tmp_path / "all.txt").open("a") as file:
        file.write("\n")
    assert predict() == 3
