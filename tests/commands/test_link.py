"""`kgkit link`: input, output, options."""

import csv
import io
import json
from dataclasses import fields

import pytest

from kgkit.linking.settings import LinkSettings
from tests.cli_helpers import build_mini, on_terminal, run

GREEN = "\x1b[32m"
TEXT = "The dog chased two mice along the bank."


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("mini"))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def linked(out):
    """Return the documents of JSON lines."""
    return [json.loads(line) for line in out.split("\n") if line]


def entities(document):
    return [(link["text"], link["entity"]) for link in document["links"]]


# -- output -----------------------------------------------------------------


def test_in_a_pipe_a_document_is_a_line_of_json(home, text):
    [document] = linked(run("link", text, "--home", home).out)
    assert (document["id"], document["text"], document["model"]) == (str(text), TEXT, "prior")
    assert entities(document) == [
        ("dog", "dog.n.01"), ("chased", "chase.v.01"), ("mice", "mouse.n.01"), ("bank", "bank.n.01"),
    ]  # fmt: skip
    assert all(TEXT[link["start"] : link["end"]] == link["text"] for link in document["links"])
    assert document["links"][0]["sense"] == "dog%1:05:00::"
    assert [each["entity"] for each in document["links"][0]["candidates"]][:2] == ["dog.n.01", "frump.n.01"]


def test_on_a_terminal_there_is_a_table_with_meanings(home, text):
    shown = on_terminal("link", text, "--home", home)
    assert shown.code == 0
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert lines[0] == str(text)
    assert lines[1] == "at mention entity score meaning"
    assert "19 mice mouse.n.01 1.00 a small rodent" in lines
    assert not any(line.startswith("{") for line in lines)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_of_a_table_is_wider_than_the_terminal(home, text, columns):
    lines = on_terminal("link", text, "--home", home, columns=columns).out.splitlines()[1:]
    assert max(map(len, lines)) <= columns


@pytest.mark.slow
def test_json_lines_are_to_be_had_on_a_terminal_too(home, text):
    for option in "--jsonl", "--json":
        assert linked(on_terminal("link", text, "--home", home, option).out)[0]["text"] == TEXT


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_without_colours_if_nobody_wants_them(home, text, tmp_path):
    args = ("link", text, "--home", home, "-o", tmp_path / "out.jsonl")
    assert GREEN in on_terminal(*args, colour=True).out
    plain = on_terminal(*args, colour=True, NO_COLOR="1").out
    assert "linking" in plain
    assert GREEN not in plain
    assert on_terminal(*args, "--quiet", colour=True).out == ""


def test_a_file_gets_json_lines_and_the_pipe_nothing(home, text, tmp_path):
    done = run("link", text, "--home", home, "-o", tmp_path / "out.jsonl")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"4 links in 1 document: {tmp_path / 'out.jsonl'}\n"
    assert (tmp_path / "out.jsonl").read_text() == run("link", text, "--home", home).out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "text.txt"]
    assert run("link", text, "--home", home, "-o", "-").out == run("link", text, "--home", home).out


def test_a_place_that_cannot_be_written_is_refused_before_the_work(home, text, tmp_path):
    done = run("link", text, "--home", home, "-o", tmp_path / "no" / "out.jsonl")
    assert done.code == 3
    assert "mkdir" in done.err
    assert run("link", text, "--home", home, "--html", tmp_path).code == 2


def test_a_page_shows_the_text_and_its_candidates_and_needs_nothing_else(home, text, tmp_path):
    text.write_text(TEXT + " <b>&")
    done = run("link", text, "--home", home, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (done.code, done.out) == (0, "")
    assert "&lt;b&gt;&amp;" in page
    assert "frump.n.01" in page
    assert "src=" not in page
    assert page.count("http") == page.count('href="https://en-word.net/lemma/') > 0  # nothing that is loaded


def test_a_page_and_json_lines_may_be_had_at_once(home, text, tmp_path):
    done = run("link", text, "--home", home, "--html", tmp_path / "page.html", "--jsonl")
    assert linked(done.out)[0]["text"] == TEXT
    assert (tmp_path / "page.html").exists()


# -- input ------------------------------------------------------------------


def test_standard_input_is_read_when_no_file_is_named_or_a_dash_is(home):
    for args in [], ["-"]:
        [document] = linked(run("link", *args, "--home", home, given=b"A dog.").out)
        assert (document["id"], entities(document)) == ("-", [("dog", "dog.n.01")])
    assert run("link", "-", "-", "--home", home).code == 2


def test_records_of_json_lines_are_documents_of_their_own(home, tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(
        '{"id": "x", "text": "A dog.\\n"}\n\n{"text": "mice", "more": [1]}\n{"id": 7, "text": ""}'
    )
    documents = linked(run("link", path, "--home", home).out)
    assert [document["id"] for document in documents] == ["x", f"{path}:3", "7"]
    assert documents[0]["text"] == "A dog.\n"
    assert len(linked(run("link", path, "--input-format", "text", "--home", home).out)) == 1
    given = run("link", "--input-format", "jsonl", "--home", home, given=b'{"text": "dog"}')
    assert linked(given.out)[0]["id"] == "-:1"


def record(**fields):
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def given(home, *args, **fields):
    """Run `kgkit link` on one record of JSON lines."""
    return run("link", "--input-format", "jsonl", "--home", home, *args, given=record(**fields))


def test_mentions_of_a_record_are_linked_and_no_others(home):
    spans = [{"start": 15, "end": 19, "id": "m1", "type": "X"}, {"start": 4, "end": 7, "text": "dog"}]
    [document] = linked(given(home, text="The dog chased mice.", mentions=spans).out)
    assert entities(document) == [("dog", "dog.n.01"), ("mice", "mouse.n.01")]
    assert [link.get("id") for link in document["links"]] == [None, "m1"]
    assert not linked(given(home, text="The dog chased mice.", mentions=[]).out)[0]["links"]
    assert len(linked(given(home, text="The dog chased mice.", mentions=None).out)[0]["links"]) == 3


def test_candidates_of_a_given_mention_are_those_it_came_with(home):
    one = {"start": 4, "end": 7, "candidates": ["mouse.n.01", "no such entity"]}
    [document] = linked(given(home, text="The dog chased mice.", mentions=[one]).out)
    assert entities(document) == [("dog", "mouse.n.01")]
    [document] = linked(given(home, "--nil", text="The dog", mentions=[one | {"candidates": []}]).out)
    assert entities(document) == [("dog", None)]


def test_a_link_of_a_given_mention_is_weighed_with_the_score_of_its_tagger(home):
    one = {"start": 15, "end": 19}
    [plain] = linked(given(home, text="The dog chased mice.", mentions=[one]).out)
    [weighed] = linked(given(home, text="The dog chased mice.", mentions=[one | {"score": 0.5}]).out)
    assert weighed["links"][0]["score"] == pytest.approx(plain["links"][0]["score"] / 2)


def test_offsets_are_those_of_the_file(home, tmp_path):
    (tmp_path / "text.txt").write_bytes("𝒟 苹果\r\n\r\ndog\tß".encode())
    [document] = linked(run("link", tmp_path / "text.txt", "--home", home).out)
    assert document["text"] == "𝒟 苹果\r\n\r\ndog\tß"
    assert [(link["start"], link["end"]) for link in document["links"]] == [(8, 11)]


def test_an_empty_text_has_no_links(home, text):
    text.write_text("")
    assert linked(run("link", text, "--home", home).out)[0]["links"] == []
    assert on_terminal("link", text, "--home", home).out.splitlines() == [str(text), "no links to mini"]


# -- options ----------------------------------------------------------------


def test_below_the_threshold_a_mention_is_dropped_or_marked(home, text):
    everything = linked(run("link", text, "--home", home).out)[0]["links"]
    sure = linked(run("link", text, "--home", home, "--threshold", "0.99").out)[0]["links"]
    marked = linked(run("link", text, "--home", home, "--threshold", "0.99", "--nil").out)[0]["links"]
    assert [link["text"] for link in sure] == [link["text"] for link in everything if link["score"] >= 0.99]
    assert [link["text"] for link in marked] == [link["text"] for link in everything]
    assert {link["entity"] for link in marked if link["nil"]} == {None}
    shown = on_terminal("link", text, "--home", home, "--threshold", "0.99", "--nil").out
    assert "NIL" in shown


def test_links_show_as_many_candidates_as_asked_for(home, text):
    for wanted in 0, 1, 2:
        [document] = linked(run("link", text, "--home", home, "--top-k", wanted).out)
        assert len(document["links"][0]["candidates"]) == wanted


def test_overlapping_links_are_kept_when_asked_for(home):
    one = linked(run("link", "--home", home, given=b"a domestic dog").out)[0]
    all_of_them = linked(run("link", "--home", home, "--overlaps", "keep", given=b"a domestic dog").out)[0]
    assert [link["text"] for link in one["links"]] == ["domestic dog"]
    assert [link["text"] for link in all_of_them["links"]] == ["domestic dog", "dog"]
    best = linked(run("link", "--home", home, "--overlaps", "score", given=b"a domestic dog").out)[0]
    [link] = best["links"]
    assert link["score"] == max(link["score"] for link in all_of_them["links"])


def test_coherence_is_named_in_the_model(home, text):
    assert linked(run("link", text, "--home", home, "--coherence", "graph").out)[0]["model"] == "prior+graph"


@pytest.mark.parametrize(
    "args",
    [
        ["--coherence", "no"],
        ["--threshold", "2"],
        ["--top-k", "-1"],
        ["--input-format", "no"],
    ],
)
def test_a_setting_out_of_range_is_exit_code_2(home, text, args):
    done = run("link", text, "--home", home, *args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")


def test_what_is_read_is_not_written_over(home, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the dog")
    for option in ("--output", "--html"):
        done = run("link", text, option, text, "--home", home)
        assert (done.code, "one of the files to read" in done.err) == (2, True)
    done = run("link", text, "--output", tmp_path / "a", "--html", tmp_path / "a", "--home", home)
    assert (done.code, "both name" in done.err) == (2, True)
    assert text.read_text() == "the dog"


@pytest.mark.parametrize("command", [["link"], ["tag", "--model", "none"]], ids=lambda command: command[0])
def test_a_page_on_standard_output_is_refused_and_no_file_is_called_dash(command, home, text, monkeypatch):
    monkeypatch.chdir(text.parent)
    done = run(*command, text, "--home", home, "--html", "-")
    assert (done.code, done.out) == (2, "")
    assert "- is standard output, and this goes to a file: name one" in done.err
    assert not (text.parent / "-").exists()


def test_every_setting_of_linking_is_an_option():
    shown = run("link", "--help").out
    for field in fields(LinkSettings):
        is_option = field.metadata.get("option", "") is not None
        assert (f"--{field.name.replace('_', '-')} " in shown) == is_option, field.name


# -- corrections ------------------------------------------------------------


def test_corrections_hold_in_every_process_and_what_is_gone_is_said_once(home, tmp_path):
    texts, table = tmp_path / "texts", tmp_path / "corrections.csv"
    texts.mkdir()
    for number in range(3):
        (texts / f"{number}.txt").write_text(TEXT)
    table.write_text(
        "text,entity,document,start\nbank,,,\ndog,frump.n.01,1.txt,\nmice,mouse.n.01,2.txt,0\nlost,,0.txt,\n"
        "dog,,9.txt,\n"
    )
    for workers in ("1", "2"):
        done = run("link", texts, "--corrections", table, "--home", home, "--workers", workers)
        links = [dict(entities(document)) for document in linked(done.out)]
        assert [each["dog"] for each in links] == ["dog.n.01", "frump.n.01", "dog.n.01"]
        assert not any("bank" in each for each in links)
        assert (done.err.count("'lost'"), done.err.count("9.txt"), done.err.count("1.txt")) == (1, 1, 0)


def test_a_correction_to_an_unknown_entity_is_refused_before_the_work(home, text, tmp_path):
    table, out = tmp_path / "corrections.csv", tmp_path / "out.jsonl"
    table.write_text("text,entity\ndog,Q144\n")
    done = run("link", text, "--corrections", table, "--home", home, "-o", out)
    assert (done.code, out.exists()) == (1, False)
    assert f"{table}:2" in done.err and "Q144" in done.err


def test_rows_of_a_table_of_links_are_changed_and_given_back(home, text, tmp_path):
    table, again = tmp_path / "links.csv", tmp_path / "again.csv"
    text.write_text('The "dog", a dog,\nchased mice\nof Zürich.')
    assert run("link", text, "--home", home, "-o", table).code == 0
    rows = [*csv.DictReader(io.StringIO(table.read_text(encoding="utf-8-sig"), newline=""))]
    assert [row["entity"] for row in rows] == ["dog.n.01", "dog.n.01", "chase.v.01", "mouse.n.01"]
    assert (rows[0]["document"], rows[0]["start"], rows[0]["before"]) == (str(text), "5", 'The "')
    rows[1]["entity"], rows[3]["entity"] = "frump.n.01", ""
    with again.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(rows[1:])
    text.write_text("A new beginning.\n" + text.read_text())
    [document] = linked(run("link", text, "--home", home, "--corrections", again).out)
    assert [(link["text"], link["entity"], link["score"] == 1.0) for link in document["links"]] == [
        ("dog", "dog.n.01", False), ("dog", "frump.n.01", True), ("chased", "chase.v.01", True),
    ]  # fmt: skip
    [document] = linked(run("link", text, "--home", home, "--corrections", again, "--nil").out)
    assert (document["links"][-1]["nil"], document["links"][-1]["score"]) == (True, 1.0)
