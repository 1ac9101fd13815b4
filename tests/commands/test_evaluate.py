"""`kgkit evaluate wsd`."""

import json

import pytest

from kgkit.catalog import Catalog
from kgkit.home import Home
from tests.cli_helpers import build_mini, on_terminal, run

DATA = """<?xml version="1.0" encoding="UTF-8"?>
<corpus lang="en"><text id="{name}.d0"><sentence id="{name}.d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="{name}.t0" lemma="dog" pos="NOUN">dogs</instance>
<instance id="{name}.t1" lemma="run" pos="VERB">ran</instance>
<wf lemma="along" pos="ADP">along</wf>
<instance id="{name}.t2" lemma="bank" pos="NOUN">banks</instance>
<instance id="{name}.t3" lemma="unheard_of" pos="ADJ">unheard-of</instance>
</sentence></text></corpus>
"""
# Right, right, wrong (the first sense is the slope), and a word that the KB does not know.
GOLD = """{name}.t0 dog%1:05:00::
{name}.t1 run%2:38:00:: run%2:38:09::
{name}.t2 bank%1:14:00::
{name}.t3 unheard_of%5:00:00::
"""


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("mini"))


def data_set(folder, name):
    """Write a data set and return the options that name it."""
    (folder / f"{name}.data.xml").write_text(DATA.format(name=name))
    (folder / f"{name}.gold.key.txt").write_text(GOLD.format(name=name))
    return "--data", folder / f"{name}.data.xml", "--gold", folder / f"{name}.gold.key.txt"


def test_scores_are_given_overall_and_by_part_of_speech_beside_the_first_sense(home, tmp_path):
    told = json.loads(run("evaluate", "wsd", *data_set(tmp_path, "one"), "--home", home, "--json").out)
    assert told["model"] == "prior"
    assert told["kb"].startswith("mini@")
    [one] = told["sets"]
    assert one["name"] == "one"
    assert (one["overall"]["right"], one["overall"]["answered"], one["overall"]["total"]) == (2, 3, 4)
    assert one["overall"]["f1"] == pytest.approx(4 / 7)
    assert one["by_pos"]["v"]["f1"] == 1
    assert one["by_pos"]["a"]["answered"] == 0
    assert one["first_sense"]["overall"] == one["overall"]
    assert told["together"]["overall"] == one["overall"]


def test_several_sets_are_scored_each_and_together(home, tmp_path):
    args = (*data_set(tmp_path, "one"), *data_set(tmp_path, "two"))
    told = json.loads(run("evaluate", "wsd", *args, "--home", home, "--json").out)
    assert [each["name"] for each in told["sets"]] == ["one", "two"]
    assert told["together"]["overall"]["total"] == 8
    assert told["together"]["overall"]["f1"] == pytest.approx(4 / 7)


def test_the_table_has_a_line_for_each_part(home, tmp_path):
    shown = run("evaluate", "wsd", *data_set(tmp_path, "one"), *data_set(tmp_path, "two"), "--home", home).out
    lines = [line.split("\t") for line in shown.splitlines()]
    assert lines[:2] == [["model prior"], ["data", "part", "instances", "P", "R", "F1", "first sense F1"]]
    assert lines[2] == ["one", "all", "4", "66.67", "50.00", "57.14", "57.14"]
    assert [line[:2] for line in lines if line[0] == "together"] == [
        ["together", part] for part in ("all", "nouns", "verbs", "adjectives")
    ]
    assert "F1" in on_terminal("evaluate", "wsd", *data_set(tmp_path, "one"), "--home", home).out


def test_answers_are_written_as_a_key_file_in_the_order_of_the_data(home, tmp_path):
    done = run(
        "evaluate", "wsd", *data_set(tmp_path, "two"), *data_set(tmp_path, "one"), "--home", home,
        "--predictions", tmp_path / "out.key.txt",
    )  # fmt: skip
    assert f"answers to 6 instances: {tmp_path / 'out.key.txt'}" in done.err
    assert (tmp_path / "out.key.txt").read_text().splitlines() == [
        f"{name}.{answer}"
        for name in ("two", "one")
        for answer in ("t0 dog%1:05:00::", "t1 run%2:38:00::", "t2 bank%1:17:01::")
    ]


def test_another_system_is_compared_by_a_paired_test(home, tmp_path):
    args = (*data_set(tmp_path, "one"), *data_set(tmp_path, "two"))
    other = tmp_path / "other.key.txt"
    # Of the first set one right answer less and one wrong answer more; of the second the model's own.
    other.write_text(
        "one.t1 run%2:38:00::\none.t2 bank%1:17:01::\none.t3 bank%1:17:01::\n"
        "two.t0 dog%1:05:00::\ntwo.t1 run%2:38:00::\ntwo.t2 bank%1:17:01::\nelsewhere.t0 dog%1:05:00::\n"
    )
    done = run("evaluate", "wsd", *args, "--versus", other, "--home", home, "--json")
    assert f"answers of {other} to instances without gold, which are not scored: 1" in done.err
    scored = json.loads(done.out)
    one, two = (each["versus"]["f1"] for each in scored["sets"])
    assert (one["score"], one["versus"]) == pytest.approx((4 / 7, 2 / 7))
    assert one["difference"] == pytest.approx(2 / 7)
    assert one["interval"][0] <= 2 / 7 <= one["interval"][1]
    assert 0 < one["p"] <= 1
    assert (two["difference"], two["interval"], two["p"]) == (0, [0, 0], 1)
    together = scored["together"]["versus"]["f1"]
    assert (together["score"], together["versus"]) == pytest.approx((8 / 14, 6 / 14))

    shown = run("evaluate", "wsd", *args, "--versus", other, "--home", home).out
    lines = [line.split("\t") for line in shown.splitlines()]
    table = lines[lines.index(["data", "metric", "versus", "score", "difference", "95 %", "p"]) + 1 :]
    assert [line[0] for line in table] == ["one", "two", "together"]
    assert table[1] == ["two", "f1", "57.14", "57.14", "0.00", "0.00 to 0.00", "1.0000"]


def test_answers_of_other_data_are_not_compared(home, tmp_path):
    args, other = data_set(tmp_path, "one"), tmp_path / "other.key.txt"
    other.write_text("two.t0 dog%1:05:00::\n")
    done = run("evaluate", "wsd", *args, "--versus", other, "--home", home)
    assert done.code == 2
    assert f"{other} has 1 answers, none of them to an instance of one" in done.err
    assert run("evaluate", "wsd", *args, "--versus", tmp_path / "none", "--home", home).code == 3
    other.write_text("")
    done = run("evaluate", "wsd", *args, "--versus", other, "--home", home)
    assert done.code == 2
    assert f"{other} has 0 answers" in done.err


def test_a_set_that_another_system_does_not_answer_is_no_score_of_nought(home, tmp_path):
    args = (*data_set(tmp_path, "one"), *data_set(tmp_path, "two"))
    other = tmp_path / "other.key.txt"
    other.write_text("".join(f"one.t{number} dog%1:05:00::\n" for number in range(4)))
    done = run("evaluate", "wsd", *args, "--versus", other, "--home", home)
    assert (done.code, done.out) == (2, "")
    assert "none of them to an instance of two" in done.err
    done = run("evaluate", "wsd", *data_set(tmp_path, "one"), "--versus", other, "--home", home)
    assert done.code == 0 and "answers, the others" not in done.err
    other.write_text(f"{other.read_text()}two.t1 run%2:38:00::\n")
    done = run("evaluate", "wsd", *args, "--versus", other, "--home", home)
    assert done.code == 0
    assert f"{other} answers, the others count as not answered: 4 of 4 of one, 1 of 4 of two" in done.err


def test_coherence_is_a_second_stage(home, tmp_path):
    told = json.loads(
        run(
            "evaluate", "wsd", *data_set(tmp_path, "one"), "--coherence", "graph", "--home", home, "--json"
        ).out
    )
    assert told["model"] == "prior+graph"
    assert told["together"]["overall"]["answered"] == 3


def test_instances_without_gold_are_not_scored_and_said_to_be(home, tmp_path):
    args = data_set(tmp_path, "one")
    args[3].write_text("one.t0 dog%1:05:00::\n")
    done = run("evaluate", "wsd", *args, "--home", home, "--json")
    assert json.loads(done.out)["together"]["overall"]["total"] == 1
    assert "3 instances have no gold" in done.err


def test_data_and_gold_that_do_not_belong_together_are_refused(home, tmp_path):
    one, two = data_set(tmp_path, "one"), data_set(tmp_path, "two")
    done = run("evaluate", "wsd", "--data", one[1], "--gold", two[3], "--home", home)
    assert done.code == 1
    assert "do the two files belong together?" in done.err
    assert run("evaluate", "wsd", *one, "--data", two[1], "--home", home).code == 2


def test_an_instance_is_not_counted_twice(home, tmp_path):
    args = data_set(tmp_path, "one")
    done = run("evaluate", "wsd", *args, *args, "--home", home)
    assert done.code == 2
    assert "'one.t0'" in done.err


def test_gold_of_another_kb_is_no_score_of_nought(home, tmp_path):
    options = data_set(tmp_path, "other")
    options[-1].write_text("".join(f"other.t{place} nobody%1:00:00::\n" for place in range(4)))
    done = run("evaluate", "wsd", *options, "--home", home)
    assert (done.code, "none of the gold senses is in knowledge base" in done.err) == (2, True)


def test_sets_whose_files_have_one_name_are_told_apart_and_both_are_kept(home, tmp_path):
    args = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        options = data_set(tmp_path / name, name)
        args += [path.rename(path.with_name(path.name.replace(name, "test"))) for path in options[1::2]]
    named = [each for pair in zip(["--data", "--gold"] * 2, args, strict=True) for each in pair]
    done = run("evaluate", "wsd", *named, "--home", home, "--json")
    assert [each["name"] for each in json.loads(done.out)["sets"]] == [str(args[0]), str(args[2])]
    with Catalog.open(Home(home)) as catalog:
        kept = [score.dataset for score in catalog.runs()[0].scores if score.metric == "f1"]
    assert sorted(kept) == sorted([str(args[0]), str(args[2]), "together"])


@pytest.mark.parametrize("place", [1, 3])
def test_what_is_read_is_not_written_over(home, tmp_path, place):
    options = data_set(tmp_path, "one")
    before = options[place].read_text()
    done = run("evaluate", "wsd", *options, "--home", home, "--predictions", options[place])
    assert (done.code, options[place].read_text()) == (2, before)
    assert "is one of the files to read" in done.err
