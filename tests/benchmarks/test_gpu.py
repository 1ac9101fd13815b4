"""The benchmarks on a GPU, tiny and on the CPU: every line gives figures, and what fails says why."""

import json
from dataclasses import asdict

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import lines, stand_ins
from benchmarks.gpu.clocks import Pace
from benchmarks.gpu.lines import Row, Setting, registered_lines, rows_of

NAMES = [each.name for each in registered_lines()]
MEASURED = {"kbert": 2, "knowbert": 12, "tucker": 1, "index": 9, "text": 3}
"""How many figures a line gives at least, on a CPU without any data."""


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    small = Setting(device="cpu", small=True, scratch=str(tmp_path_factory.mktemp("scratch")))
    stand_ins.make(asdict(small))
    return small


def test_every_line_is_tried_here():
    assert {*MEASURED} == {*NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_line_gives_figures_on_stand_ins(name, setting, tmp_path):
    [line] = [each for each in registered_lines() if each.name == name]
    if missing := line.missing():
        pytest.skip(f"not installed: {', '.join(missing)}")
    lines.measure(line.function, str(tmp_path / "rows"), asdict(setting))
    rows = [Row(**json.loads(each)) for each in (tmp_path / "rows").read_text().splitlines()]
    figures = [row.value for row in rows if row.value is not None]
    assert len(figures) >= MEASURED[name] and all(value > 0 for value in figures)
    assert all(row.value is not None or row.note for row in rows)
    assert all(row.memory is None for row in rows)  # of a GPU alone
    assert len(lines.table_of(line, rows).markdown().splitlines()) > 4


@pytest.mark.slow
def test_the_command_writes_the_page_and_names_what_is_left_out(tmp_path, capsys):
    given = ["--small", "--device", "cpu", "--data", "", "--out", str(tmp_path), "--only", "tucker"]
    code = command.main(given)
    page = (tmp_path / "gpu.md").read_text()
    assert (code, page + "\n") == (0, capsys.readouterr().out)
    assert "an epoch of" in page and "Left out" not in page
    assert {*json.loads((tmp_path / "gpu.json").read_text())} == {"tucker"}
    code = command.main([*given, "--budget", "1"])
    assert code == 1 and "Left out, for lack of time: tucker." in (tmp_path / "gpu.md").read_text()


def test_the_lines_are_listed_with_what_they_lack(capsys, monkeypatch):
    monkeypatch.setattr(lines.importlib.util, "find_spec", lambda name: None if name == "pykeen" else name)
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [each.split()[0] for each in listed] == NAMES
    assert [each.split()[0] for each in listed if "not installed: pykeen)" in each] == ["tucker"]


@pytest.mark.parametrize("option", [["--small"], ["--only", "tucker"]])
def test_the_results_are_not_replaced_by_some_of_the_lines_nor_by_tiny_ones(option, capsys):
    with pytest.raises(SystemExit):
        command.main(["--write", *option])
    assert "--write replaces all of the part" in capsys.readouterr().err


@pytest.mark.slow
def test_without_a_gpu_the_command_says_so(capsys):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert command.main([]) == 1
    assert "finds no GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("function", "limit", "why"),
    [("failing", 300.0, "ValueError: the second fails"), ("hanging", 5.0, "stopped at its limit of 5 s")],
)
def test_a_line_that_fails_or_hangs_keeps_its_rows_and_says_why(function, limit, why, tmp_path):
    line = lines.Line(
        name="x", title="X", notes="", limit=limit, order=0, needs=(), stand_ins=False,
        function=f"tests.benchmarks.failing_lines:{function}",
    )  # fmt: skip
    setting = Setting(device="cpu", small=True, scratch=str(tmp_path))
    first, last = rows_of(line, setting, line.limit)
    assert (first.what, first.value) == ("first", 1.0)
    assert last.value is None and why in last.note


def test_a_missing_package_is_a_row(tmp_path):
    line = lines.Line(
        name="x", title="X", notes="", limit=3.0, order=0, needs=("no_such_module",), stand_ins=False,
        function="",
    )  # fmt: skip
    [row] = rows_of(line, Setting(device="cpu", small=True, scratch=str(tmp_path)), 3.0)
    assert row.note == "not measured: not installed: no_such_module"


def test_the_part_of_the_results_is_replaced_and_the_others_stay():
    once = command.with_part("# Others\n", "# One\n")
    assert once == f"# Others\n\n{command.BEGIN}\n# One\n\n{command.END}"
    assert command.with_part(once + "# After\n", "# Two\n") == once.replace("One", "Two") + "# After\n"
    assert command.RESULTS.read_text().count(command.BEGIN) == 1


def test_a_ratio_is_over_the_control():
    row = Row(what="a", value=3.0, unit="ms", control="BERT", control_value=2.0, memory=5_000_000, note="b|c")
    assert row.cells() == ["a", "3.00 ms", "BERT: 2.00 ms", "1.50 ×", "5", "b/c"]


def test_pace_notes_the_steps_of_one_training_and_ends_it():
    def trainings():
        for total in (3, 10):
            pace("reading", 1, 1)
            for done in range(1, total + 1):
                pace("training, step", done, total)
                ran.append(total)

    ran = []
    pace = Pace("cpu", steps=4, training=2)
    pace.run(trainings)
    assert ran == [3, 3, 3, 10, 10, 10] and pace.total == 10 and len(pace.times) == 4
    assert pace.rate(2) == pytest.approx(2 / (pace.times[3] - pace.times[1]))
    with pytest.raises(RuntimeError, match="only 4 steps"):
        pace.rate(4)
