"""Facts of linked senses: rows that differ in the facts alone."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from benchmarks import answers, linked_facts
from benchmarks.fine_tuning import TaskFiles
from kgkit.evaluation.tasks import find_task


def test_rows_differ_in_their_facts_alone(tmp_path, monkeypatch, capsys):
    """The guard of the comparison: seed, data, encoder and other options are those of the control."""
    trainings = []

    def predict(path, home, training, test):
        trainings.append(training)
        examples = find_task(training[training.index("--task") + 1]).read(test)
        path.write_text("".join(f"{example.id}\t{example.gold}\n" for example in examples))

    monkeypatch.setattr(answers, "train_and_predict", predict)
    data = tmp_path / "dev.tsv"
    data.write_text("".join(f"x\t{number % 2}\t\tthe dog {number}\n" for number in range(4)))
    files = TaskFiles("acceptability", (data,), data)
    monkeypatch.setitem(linked_facts.GLUE_TASKS, "cola", files)
    linked_facts.main(
        ["cola", "--home", str(tmp_path), "--out", str(tmp_path), "--seed", "0", "--epochs", "2"]
    )

    rows = linked_facts.rows_of("wsd-minilm")
    assert list(rows) == ["control", "longest", "link"]
    common = []
    for training, row in zip(trainings, rows.values(), strict=True):
        start = training.index(row[0])
        assert training[start : start + len(row)] == row
        common.append([*training[:start], *training[start + len(row) :]])
    assert common[0] == common[1] == common[2]
    assert capsys.readouterr().out.count("100.00") >= 3
