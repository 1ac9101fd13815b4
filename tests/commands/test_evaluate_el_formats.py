"""`kgkit evaluate el`: formats of data, measures with intervals, a second system, NIF and the report."""

import lzma
import re

import pytest

from benchmarks.linking_formats import write_doc_bin, write_kilt
from kgkit.evaluation import read_gold_documents, read_links
from kgkit.evaluation.el_formats import read_gold_data
from kgkit.evaluation.nif import write_nif
from tests.cli_helpers import run
from tests.commands.test_evaluate_el import ONE, TWO
from tests.commands.test_evaluate_el import told as json_of

TEXT = "York gives Apple to Nowhere"
LABELS = [(0, 4, "Q42462", "York"), (11, 16, "Q312", "Apple Inc."), (20, 27, "<NIL>", "Nowhere")]


@pytest.fixture
def evaluate(toy_home):
    """Return what runs the command on a data set, with options."""

    def call(path, *options):
        return run("evaluate", "el", "--data", path, "--home", toy_home, *options)

    return call


def elevant(**changes):
    labels = [
        {"id": number, "span": [start, end], "entity_id": entity, "name": name, "type": "T"}
        for number, (start, end, entity, name) in enumerate(LABELS)
    ]
    return {"id": 5, "title": "", "text": TEXT, "evaluation_span": [0, 27], "labels": labels, **changes}


# -- formats


def test_every_format_of_the_same_documents_has_the_same_score(evaluate, put, tmp_path):
    pytest.importorskip("pyoxigraph")
    pytest.importorskip("spacy")
    own = put("own.jsonl", ONE, TWO)
    write_nif(tmp_path / "a.ttl", read_gold_documents(own))
    write_kilt(tmp_path / "a.kilt.jsonl", read_gold_documents(own))
    write_doc_bin(tmp_path / "a.spacy", read_gold_documents(own))
    scores = {}
    for path in (own, *(tmp_path / f"a.{suffix}" for suffix in ("ttl", "kilt.jsonl", "spacy"))):
        [scored] = json_of(evaluate(path, "--json", "--mentions", "given"))["sets"]
        scores[scored["format"]] = {
            name: score for name, score in scored.items() if name not in ("name", "data", "format")
        }
    assert list(scores) == ["kgkit", "nif", "kilt", "docbin"]
    for name in ("nif", "kilt", "docbin"):
        assert scores[name] == scores["kgkit"], name
    assert scores["kgkit"]["right"] == 3


def test_labels_of_elevant_are_compared_by_name_where_no_identifier_is_a_key(evaluate, put):
    path = put("elevant.jsonl", elevant())
    scored = json_of(evaluate(path, "--json", "--mentions", "given"))
    assert scored["sets"][0]["format"] == "elevant"
    assert (scored["together"]["right"], scored["together"]["nil"]) == (2, 1)
    assert scored["not_in_kb"] == {"entities": 0, "mentions": 0}
    labels = [{"id": 1, "span": [0, 4], "entity_id": "York", "name": "Elsewhere"}]
    scored = json_of(evaluate(put("ids.jsonl", elevant(labels=labels)), "--json", "--mentions", "given"))
    assert scored["together"]["right"] == 1


def test_a_compressed_file_is_recognised_by_its_content(evaluate, put):
    path = put("elevant.txt", elevant())
    packed = path.with_name("elevant.jsonl.xz")
    packed.write_bytes(lzma.compress(path.read_bytes()))
    [scored] = json_of(evaluate(packed, "--json"))["sets"]
    assert (scored["name"], scored["format"]) == ("elevant", "elevant")


def test_what_is_no_data_set_is_refused(evaluate, put):
    done = evaluate(put("bad.txt"), "--mentions", "given")
    assert done.code == 1 and "bad.txt" in done.err


@pytest.mark.parametrize("header", ["id,name,aliases", "#id,name", "xid,name", "base,name", "id\tname", ""])
@pytest.mark.parametrize("name", ["names.csv", "names.TSV", "names.csv.xz"])
def test_a_table_is_no_data_set_however_it_begins(evaluate, tmp_path, header, name):
    path, content = tmp_path / name, f"{header}\n1,May Chen\n".encode()
    path.write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
    done = evaluate(path)
    assert (
        done.code == 1
        and f"{name}:1: not recognised as a data set of entity linking (kgkit, elevant," in done.err
    )


def test_what_linking_writes_is_gold_whose_shown_candidates_are_not_read(evaluate, toy_home, tmp_path):
    text, links = tmp_path / "york.txt", tmp_path / "links.jsonl"
    text.write_bytes("👩‍🚀 York\r\ngives Apple to York".encode())
    done = run("link", text, "--model", "prior", "--nil", "--home", toy_home, "-o", links)
    assert done.code == 0, done.err
    [gold] = read_gold_data(links)
    assert gold.gold and gold.candidates == [None] * len(gold.gold)
    scored = json_of(evaluate(links, "--json", "--model", "prior"))
    assert (scored["sets"][0]["format"], scored["together"]["micro"]["f1"]) == ("linked", 1.0)


# -- measures


def test_measures_are_of_every_matching_and_scope(evaluate, put):
    scored = json_of(evaluate(put("one.jsonl", ONE), "--json"))
    assert scored["experiment"] == "A2KB"
    measures = scored["sets"][0]["measures"]
    assert {name: list(scopes) for name, scopes in measures.items()} == {
        "strong": ["inkb", "nil"], "weak": ["inkb", "nil"],
    }  # fmt: skip
    strong, weak = measures["strong"]["inkb"], measures["weak"]["inkb"]
    assert strong["f1"] == scored["together"]["micro"]["f1"] == pytest.approx(2 / 11)
    # "the Big Apple" overlaps "Big Apple", and both mean the city.
    assert (weak["precision"], weak["recall"]) == (pytest.approx(2 / 6), pytest.approx(2 / 5))
    assert strong["intervals"]["f1"] == [0.0, 1.0], "a single document says nothing of others"


def test_several_sets_have_measures_each_and_together(evaluate, put, toy_home):
    one, two = put("one.jsonl", ONE), put("two.jsonl", TWO)
    done = run("evaluate", "el", "--data", one, "--data", two, "--home", toy_home)
    lines = [line.split("\t") for line in done.out.splitlines()]
    head = ["data", "matching", "entities", "P", "R", "F1", "95 %", "macro F1", "95 %"]
    rows = lines[lines.index(head) + 1 :]
    assert [row[:3] for row in rows[:4]] == [
        ["one", "strong", "InKB"], ["one", "strong", "with NIL"],
        ["one", "weak", "InKB"], ["one", "weak", "with NIL"],
    ]  # fmt: skip
    assert [row[0] for row in rows[4::4]] == ["two", "together"]
    assert rows[0][3:7] == ["16.67", "20.00", "18.18", "0.00 to 100.00"]


# -- a second system


def predictions(evaluate, put, path, *options):
    out = path.with_name("links.tsv")
    assert evaluate(path, "--predictions", out, *options).code == 0
    return out


def test_a_system_beside_itself_has_no_difference(evaluate, put):
    path = put("a.jsonl", ONE, TWO)
    links = predictions(evaluate, put, path, "--mentions", "given")
    compared = json_of(evaluate(path, "--json", "--mentions", "given", "--versus", links))["together"][
        "versus"
    ]
    for scopes in compared.values():
        for score in (each["f1"] for each in scopes.values()):
            assert score["score"] == score["versus"]
            assert (score["difference"], score["interval"], score["p"]) == (0, [0, 0], 1.0)


def test_a_better_system_has_the_sign_of_its_difference_and_a_small_p(evaluate, put):
    documents = [{**TWO, "doc_id": number} for number in range(12)]
    path = put("a.jsonl", *documents)
    worse = put("worse.tsv")
    worse.write_text("".join(f"{number}\t0\t4\tApple\n" for number in range(12)))
    done = evaluate(path, "--json", "--versus", worse)
    score = json_of(done)["sets"][0]["versus"]["strong"]["inkb"]["f1"]
    assert (score["versus"], score["score"], score["difference"]) == (0, 1, 1)
    unseen = 1 - 0.05 ** (1 / 12)  # documents that twelve alike may have missed, on which it may be worse
    assert score["interval"] == [pytest.approx(1 - 2 * unseen), 1] and 0 < score["p"] < 0.001
    lines = [line.split("\t") for line in evaluate(path, "--versus", worse).out.splitlines()]
    assert lines[-4][:6] == ["a", "F1, strong, InKB", "0.00", "100.00", "100.00", "55.82 to 100.00"]


def test_predictions_for_foreign_data_are_refused(evaluate, put):
    path, links = put("a.jsonl", ONE, TWO), put("links.tsv")
    links.write_text("7\t0\t4\tYork\n8\t0\t4\tYork\n")
    done = evaluate(path, "--versus", links)
    assert (
        done.code == 2 and "none of the 2 documents of" in done.err and "ids have to be the same" in done.err
    )
    links.write_text("2\t0\t4\tYork\n8\t0\t4\tYork\n")
    done = evaluate(path, "--versus", links)
    assert done.code == 0 and "1 documents of" in done.err and "are not scored" in done.err
    links.write_text("2\t0\t400\tYork\n")
    done = evaluate(path, "--versus", links)
    assert done.code == 2 and "has a link of 0 to 400 in the document '2', which ends at 6" in done.err
    assert evaluate(path, "--versus", path.with_name("none.tsv")).code == 3


# -- files that are written


def test_predictions_are_nif_where_their_name_says_so(evaluate, put, tmp_path):
    pytest.importorskip("pyoxigraph")
    path = put("a.jsonl", ONE, TWO)
    assert evaluate(path, "--predictions", tmp_path / "links.tsv").code == 0
    assert evaluate(path, "--predictions", tmp_path / "links.ttl.gz").code == 0
    read = {gold.document.id: gold.gold for gold in read_gold_data(tmp_path / "links.ttl.gz")}
    written = read_links(tmp_path / "links.tsv")
    spaced = {
        name: [(link.start, link.end, link.entity and link.entity.replace("_", " ")) for link in links]
        for name, links in written.items()
    }
    assert {
        name: [(link.start, link.end, link.entity) for link in links] for name, links in read.items()
    } == spaced
    compared = json_of(evaluate(path, "--json", "--versus", tmp_path / "links.ttl.gz"))
    assert compared["together"]["versus"]["strong"]["nil"]["f1"]["p"] == 1.0


def test_a_report_has_a_section_for_each_document_and_a_row_for_each_error(evaluate, put, tmp_path):
    path = put("a.jsonl", ONE, TWO)
    done = evaluate(path, "--report", tmp_path / "report.html", "--json")
    assert f"report: {tmp_path / 'report.html'}" in done.err
    html = (tmp_path / "report.html").read_text()
    assert html.count("<section>") == 2 and html.rstrip().endswith("</html>")
    kinds = re.findall(r'<tr data-kind="(\w+)"', html)
    total = json_of(done)["together"]
    assert len(kinds) - kinds.count("link_on_nil") - kinds.count("link_nowhere") - (
        kinds.count("link_misplaced")
    ) == sum(total["mention_errors"].values())
    for name in ("on_nil", "misplaced", "nowhere"):
        assert kinds.count(f"link_{name}") == total["link_errors"][name]


def test_a_report_that_fails_leaves_no_file(evaluate, put, tmp_path):
    path = put("a.jsonl", ONE, {"doc_id": 2})
    done = evaluate(path, "--report", tmp_path / "report.html", "--predictions", tmp_path / "links.tsv")
    assert done.code == 1 and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "report.txt"], "its name ends in .html"),
        (["--report", "a.jsonl"], "is one of the files to read"),
        (["--report", "x.html", "--predictions", "x.html"], "is one of the files to read"),
        (["--predictions", "."], "is a folder"),
    ],
)
def test_outputs_that_cannot_be_are_refused_before_anything_is_linked(
    evaluate, put, tmp_path, monkeypatch, options, message
):
    put("a.jsonl", ONE)
    monkeypatch.chdir(tmp_path)
    done = evaluate("a.jsonl", *options)
    assert done.code == 2 and message in done.err
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]


def test_candidates_of_the_data_are_those_that_are_scored(evaluate, put):
    marked = "[START_ENT] York [END_ENT] gives Apple"
    line = {"id": "1", "input": marked, "output": [{"answer": "York"}]}
    free = json_of(evaluate(put("free.jsonl", line), "--json", "--mentions", "given"))["together"]
    assert free["right"] == 1
    bound = {**line, "candidates": ["New York City"]}
    scored = json_of(evaluate(put("bound.jsonl", bound), "--json", "--mentions", "given"))["together"]
    assert (scored["right"], scored["mention_errors"]["no_candidate"]) == (0, 1)


def test_titles_of_a_wiki_and_keys_with_underscores_are_equal(evaluate, put, tmp_path):
    rows = "-DOCSTART- (1)\nthe\nBig\tB\tBig Apple\tBig\thttp://en.wikipedia.org/wiki/New_York_City\n"
    (tmp_path / "a.tsv").write_text(
        rows + "Apple\tI\tBig Apple\tBig\thttp://en.wikipedia.org/wiki/New_York_City\n"
    )
    scored = json_of(evaluate(tmp_path / "a.tsv", "--json", "--mentions", "given"))
    assert (scored["sets"][0]["format"], scored["together"]["right"]) == ("aida", 1)
    assert scored["not_in_kb"] == {"entities": 0, "mentions": 0}


def test_redirects_join_titles_of_every_format_and_of_predictions(evaluate, put, tmp_path):
    line = {"id": "1", "input": "[START_ENT] York [END_ENT] .", "output": [{"answer": "Old York"}]}
    path = put("a.jsonl", line)
    (tmp_path / "moved.json").write_text('{"Old York": "York", "Eboracum": "York"}')
    (tmp_path / "links.tsv").write_text("1\t0\t4\tEboracum\n")
    options = ["--json", "--mentions", "given", "--redirects", tmp_path / "moved.json"]
    scored = json_of(evaluate(path, *options, "--versus", tmp_path / "links.tsv"))["together"]
    assert scored["right"] == 1
    assert scored["versus"]["strong"]["inkb"]["f1"]["versus"] == 1


def test_nil_that_is_not_linked_counts_only_with_nil(evaluate, put):
    # "Straße" has no gold, and nothing of the text is in the knowledge base but York.
    line = {"id": "1", "input": "York and [START_ENT] Nowhere [END_ENT]", "output": []}
    scored = json_of(evaluate(put("a.jsonl", line), "--json", "--mentions", "given"))["together"]
    strong = scored["measures"]["strong"]
    assert (strong["inkb"]["f1"], strong["nil"]["f1"]) == (0, 1)
    assert strong["inkb"]["macro_f1"] == 1, "nothing to link, and no link"


def test_a_report_names_types_of_the_data_before_those_of_the_kb(evaluate, put, tmp_path):
    pytest.importorskip("pyoxigraph")
    typed = {**TWO, "mentions": [{"start": 0, "end": 1, "entity": "Apple", "type": "FRUIT"}]}
    path = put("a.jsonl", typed)
    assert evaluate(path, "--report", tmp_path / "a.html", "--mentions", "given").code == 0
    html = (tmp_path / "a.html").read_text()
    assert re.findall(r'<tr data-kind="\w+" data-cause="[\w ]+" data-type="(\w+)"', html) == ["FRUIT"]


def test_a_report_over_mentions_of_the_kb_has_overlaps_and_links_without_mentions(evaluate, put, tmp_path):
    path = put("a.jsonl", ONE)
    assert evaluate(path, "--report", tmp_path / "a.html").code == 0
    html = (tmp_path / "a.html").read_text()
    causes = dict(re.findall(r'<tr data-kind="(\w+)" data-cause="([\w ]+)"', html))
    assert causes["misplaced"] == causes["link_misplaced"] == "overlap"
    assert set(causes) == {
        "misplaced", "link_misplaced", "missed", "link_nowhere", "link_on_nil",
        "wrong_choice", "no_candidate",
    }  # fmt: skip
