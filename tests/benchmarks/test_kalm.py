"""The bench of KALM, on a few sentences: its texts, its knowledge bases and its tables."""

import json
import lzma
import math
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import answers, kalm, kalm_kb, open_names_rule
from kgkit.evaluation.ner import read_names
from kgkit.home import Home
from kgkit.models.folder import model_folder
from tests.cli_helpers import run
from tests.small_kb import build, type_records

TYPES = type_records(LOC={"Oslo": 3.0, "Rome": 3.0}, PER={"Anna": 3.0, "Bert": 3.0})
SENTENCE = "{} B-PER\nlives O\nin O\n{} B-LOC\n. O\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    build(folder, TYPES, name="types").close()
    (folder / "conll2003").mkdir()
    (folder / "wikitext2").mkdir()
    for part in ("train", "testa", "testb"):
        with lzma.open(folder / "conll2003" / f"eng.{part}.xz", "wt") as file:
            file.write("-DOCSTART- O\n\n")
            for number in range(20):
                file.write(SENTENCE.format(("Anna", "Bert", "Zoe")[number % 3], ("Oslo", "Rome")[number % 2]))
    with lzma.open(folder / "wikitext2" / "train.txt.xz", "wt") as file:
        file.write(" = Oslo = \n \n" + "Anna was born in Rome . \n" * 100)
    return folder


@pytest.fixture
def in_one_process(monkeypatch):
    def call(command, **_):
        words = command[len(answers.COMMAND) :]
        monkeypatch.setattr(sys, "argv", ["kgkit", *words])  # what the manifest says of the training
        done = run(*words)
        assert done.code == 0, done.err
        return SimpleNamespace(stdout=done.out.encode())

    monkeypatch.setattr(answers, "subprocess", SimpleNamespace(run=call, PIPE=None))


@pytest.mark.slow
def test_models_are_trained_and_scored_once(folder, in_one_process, capsys, monkeypatch):
    arguments = ["--home", folder, "--data", folder, "--kb", "types", "--only", "awd", "--only", "kalm-both"]
    arguments = [*map(str, arguments), "--epochs", "1", "--device", "cpu", "--quiet"]
    kalm.main(arguments)
    tables = capsys.readouterr().out
    assert "| awd | " in tables and "| kalm-both | " in tables
    [alone] = [line for line in tables.splitlines() if line.startswith("| looked up alone | 1.0 |")]
    assert alone.split(" | ")[2:6] == ["91.9", "91.9", "100.0", ""]  # 6 of 40 are Zoe
    assert "| posterior | 0.0 |" in tables and "| oracle |" not in tables
    text = (folder / "kalm-texts" / "train.txt").read_text()
    assert text.startswith("Anna lives in Oslo .\nBert lives in Rome .") and "B-" not in text

    def refuse(*_, **__):
        raise AssertionError("asked again")

    monkeypatch.setattr(answers, "subprocess", SimpleNamespace(run=refuse, PIPE=None))
    kalm.main(arguments)
    assert capsys.readouterr().out == tables


def test_models_of_the_bench_have_names_that_a_home_takes_and_rows_name_models(folder):
    for name in kalm.MODELS:
        model_folder(Home(folder), name)
    assert {row.model for row in kalm.NAMES.values()} <= kalm.MODELS.keys() >= {*kalm.LANGUAGE}


def test_extra_text_has_no_headings_and_so_many_words(folder):
    bench = kalm.Bench(Home(folder), folder, "types", [])
    words = bench.extra_text().read_text().split()
    assert "=" not in words and 262 <= len(words) < 262 + 6


def test_an_oracle_knows_as_many_tokens_as_it_should(folder):
    words, source = kalm_kb.words_of(Home(folder), "types")
    assert (words["LOC"], source) == ({"Oslo": 3.0, "Rome": 3.0}, "")
    labels = Counter({("Oslo", "LOC"): 50, ("Zoe", "PER"): 30, ("Zoe", "LOC"): 10, ("Rio", "LOC"): 10})
    full = kalm_kb.filled(words, labels, Counter(), 0.9)
    assert full["PER"]["Zoe"] == 30.0 and full["LOC"]["Zoe"] == 10.0 and "Rio" not in full["LOC"]
    assert "Rio" in kalm_kb.filled(words, labels, Counter(), 0.91)["LOC"]
    assert kalm_kb.filled(words, labels, Counter(), 0.5) == words
    outside = Counter({"Zoe": 41, "Rio": 10})
    assert {"Zoe", "Rio"} & {*kalm_kb.filled(words, labels, outside, 1.0)["LOC"]} == {"Rio"}


def test_words_of_labels_are_counted_in_names_and_outside(tmp_path):
    path = tmp_path / "gold.conll"
    path.write_text("Bank B-ORG\nof I-ORG\nOslo I-ORG\nof O\nOslo B-LOC\nof O\n. O\n")
    inside, outside = kalm_kb.label_words(path)
    assert inside == {("Bank", "ORG"): 1, ("of", "ORG"): 1, ("Oslo", "ORG"): 1, ("Oslo", "LOC"): 1}
    assert outside == {"of": 2, ".": 1}


@pytest.fixture
def relations(folder):
    """Write a fact of T-REx, one of Google-RE and a sentence of FewRel."""
    born = {"predicate_id": "P19", "sub_label": "Ada van Dyk", "obj_label": "Bergen",
            "evidences": [{"obj_surface": "the city of Bergen", "masked_sentence": ""}]}  # fmt: skip
    plays = {"predicate_id": "P136", "sub_label": "Rain Song", "obj_label": "jazz"}
    works = {"predicate_id": "P463", "sub_label": "Ada van Dyk", "obj_label": "Oslo Choir"}
    died = {"pred": "/people/deceased_person/place_of_death", "sub_label": "Bo Lund", "obj_label": "Oslo"}
    for name, facts in {"TREx": [born, born, plays, works], "Google_RE": [died]}.items():
        (folder / "lama" / name).mkdir(parents=True, exist_ok=True)
        with lzma.open(folder / "lama" / name / "facts.jsonl.xz", "wt") as file:
            file.writelines(json.dumps(fact) + "\n" for fact in facts)
    sentence = {"tokens": "The Rhine at Basel , says Ann".split(), "h": ["", "", [[1]]], "t": ["", "", [[3]]]}
    of_rank = {"tokens": ["Ann", "is", "General"], "h": ["", "", [[0]]], "t": ["", "", [[2]]]}
    (folder / "fewrel").mkdir(exist_ok=True)
    with lzma.open(folder / "fewrel" / "val_wiki.json.xz", "wt") as file:
        json.dump({"P206": [sentence], "P410": [of_rank], "P59": [sentence]}, file)


def test_names_have_the_types_that_their_relations_join(folder, relations):
    names = {*kalm_kb.lama_names(folder / "lama")}
    assert names == {
        ("Ada van Dyk", "PER"), ("Bergen", "LOC"), ("the city of Bergen", "LOC"), ("Rain Song", "MISC"),
        ("Oslo Choir", "ORG"), ("Bo Lund", "PER"), ("Oslo", "LOC"),
    }  # fmt: skip
    fewrel = [*kalm_kb.fewrel_names(folder / "fewrel" / "val_wiki.json.xz")]
    assert fewrel == [("Rhine", "LOC"), ("Basel", "LOC"), ("Ann", "PER")]


def test_the_wider_vocabulary_has_the_words_of_more_names(folder, relations):
    bench = kalm.Bench(Home(folder), folder, "types", [])
    words, _ = kalm_kb.words_of(Home(folder), bench.wide())
    assert words["LOC"] == {"Oslo": 4.0, "Rome": 3.0, "Bergen": 1.0, "Rhine": 1.0, "Basel": 1.0}
    assert words["PER"] == {
        "Anna": 3.0,
        "Bert": 3.0,
        "Ada": 1.0,
        "Dyk": 1.0,
        "Bo": 1.0,
        "Lund": 1.0,
        "Ann": 1.0,
    }
    assert words["ORG"] == {"Oslo": 1.0, "Choir": 1.0} and words["MISC"] == {"Rain": 1.0, "Song": 1.0}
    assert kalm_kb.words_of(Home(folder), "types")[0]["LOC"] == {"Oslo": 3.0, "Rome": 3.0}


def test_models_of_the_wider_vocabulary_are_trained_with_it(folder, relations, monkeypatch):
    bench, trained = kalm.Bench(Home(folder), folder, "types", ["--epochs", "1"]), []
    monkeypatch.setattr(bench.runs, "train", lambda *words: trained.append(words))
    for name in ("wide", "extra", "oracle", "kalm-both"):
        bench.train(name, kalm.MODELS[name])
    kbs = [words[words.index("--kb") + 1] for words in trained]
    assert kbs == ["types-wide", "types", "types-oracle", "types"]
    assert [words.count("--data") for words in trained] == [1, 2, 1, 1]
    assert str(bench.extra_text()) in trained[1] and trained[3][-2:] == ("--epochs", "1")


def test_a_share_of_the_words_is_left_out_and_each_type_keeps_one():
    words = {"LOC": {f"l{number}": 1.0 for number in range(50)}, "PER": {"p": 1.0}}
    half = kalm_kb.without(words, 0.5)
    assert 25 <= len(half["LOC"]) + len(half["PER"]) <= 26 and half == kalm_kb.without(words, 0.5)
    assert [len(counts) for counts in kalm_kb.without(words, 1.0).values()] == [1, 1]


def test_the_knowledge_bases_of_the_bench_are_types_for_kalm(folder):
    bench = kalm.Bench(Home(folder), folder, "types", [])
    assert bench.oracle() == "types-oracle" and bench.reduced_kb(0) == "types"
    words, _ = kalm_kb.words_of(Home(folder), bench.reduced_kb(40))
    assert sum(map(len, words.values())) < 4
    assert "Zoe" in kalm_kb.words_of(Home(folder), bench.oracle())[0]["PER"]


@pytest.mark.slow
def test_words_that_are_left_out_are_a_table_and_a_picture(folder, in_one_process, capsys, monkeypatch):
    monkeypatch.setattr(kalm, "REDUCED_KB_SHARES", (0, 40))
    arguments = ["--home", folder, "--data", folder, "--kb", "types", "--part", "left-out"]
    arguments += ["--picture", folder / "left-out.svg", "--epochs", "1", "--device", "cpu", "--quiet"]
    kalm.main([*map(str, arguments)])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if " % |" in line]
    assert [row[0] for row in rows] == ["| 0 %", "| 40 %", "| 100 %"] and rows[2][3:] == ["0.0", "0.0 |"]
    assert all(math.exp(float(row[1])) == pytest.approx(float(row[2]), rel=0.05) for row in rows)
    assert float(rows[0][4].rstrip(" |")) > float(rows[1][4].rstrip(" |"))
    picture = (folder / "left-out.svg").read_text()
    assert picture.startswith("<?xml") and picture.count("<!-- ") > 10
    for label in ("F1 of names", "pseudo-perplexity, valid", "40 %"):
        assert f"<!-- {label} -->" in picture


def test_words_that_are_left_out_stay_in_the_vocabulary(folder):
    bench = kalm.Bench(Home(folder), folder, "types", [])
    words = {word for of_type in kalm_kb.words_of(Home(folder), "types")[0].values() for word in of_type}
    assert {*bench.kb_words().read_text().split()} == words


def open_names_gold(folder):
    """Write a labelled file whose sentences have words with a type, open names and others."""
    path = folder / "open.conll"
    lines = ["said O", "Anna B-PER", "Lund I-PER", "of O", "Oslo B-LOC", "", "Lund B-ORG", "rose O", ""]
    path.write_text("\n".join([*lines, "WE O", "SAW O", "HIM O", "", ""]))
    return path


def rule_vocabulary(folder, min_count="1"):
    (folder / "conll2003").mkdir(exist_ok=True)
    with lzma.open(folder / "conll2003" / "eng.train.xz", "wt") as file:
        file.write("said O\nLund O\nat O\nOslo O\n\n" * 3 + "said O\nYuri O\n\n")
    with lzma.open(folder / "conll2003" / "eng.testa.xz", "wt") as file:
        file.write("said O\nLund O\nat O\nOslo O\n\n")
    build(folder, TYPES, name="types").close()
    bench = kalm.Bench(Home(folder), folder, "types", ["--epochs", "1", "--min-count", min_count])
    return bench, bench.open_vocabulary("types")


def test_the_rule_makes_each_open_name_a_person_and_looks_up_the_others(tmp_path):
    _, vocabulary = rule_vocabulary(tmp_path)
    [named] = read_names(open_names_gold(tmp_path))
    text = named.document.text
    names = open_names_rule.find_names(named, vocabulary)
    found = [(text[name.start : name.end], name.type) for name in names]
    assert found == [("Anna Lund", "PER"), ("Oslo", "LOC"), ("Lund", "PER")]
    places = open_names_rule.find_names(named, vocabulary, "LOC")
    assert [name.type for name in places] == ["PER", "LOC", "LOC", "LOC"]
    scores = open_names_rule.score_rule(open_names_gold(tmp_path), vocabulary)
    assert (scores.overall.right, scores.overall.predicted, scores.overall.gold) == (2, 3, 3)


def test_the_rule_has_the_vocabulary_of_the_trainings_that_it_stands_beside(tmp_path):
    assert "Yuri" in rule_vocabulary(tmp_path)[1].words
    (tmp_path / "kalm-texts" / "train.txt").unlink()
    assert "Yuri" not in rule_vocabulary(tmp_path, "2")[1].words


def test_labels_of_the_rule_are_its_own_and_not_those_of_the_file(tmp_path):
    _, vocabulary = rule_vocabulary(tmp_path)
    open_names_rule.write_labels(open_names_gold(tmp_path), vocabulary, tmp_path / "labels.conll")
    [gold], [labelled] = read_names(open_names_gold(tmp_path)), read_names(tmp_path / "labels.conll")
    assert labelled.document == gold.document
    assert labelled.names == open_names_rule.find_names(gold, vocabulary) != gold.names
    rows = [line.split() for line in (tmp_path / "labels.conll").read_text().splitlines() if line.strip()]
    assert {row[1] for row in rows} == {"O"}
