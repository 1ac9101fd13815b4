"""What `kgkit evaluate el` computes of counts: measures, comparisons, and a second system's predictions."""

import pytest

from kgkit.commands.evaluate.el import (
    ComparedSystem,
    _check_outputs,
    _gold_sets,
    _write_measures,
    _write_versus,
)
from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation import Labelled, write_links
from kgkit.evaluation.el_files import plain_title
from kgkit.evaluation.matching import MEASURES, RATIOS, DocumentCounts, compare_counts, measures
from kgkit.types import Document

GOLD = [Labelled(0, 2, "A"), Labelled(3, 5, "B"), Labelled(6, 8, None)]
ALL = [Labelled(0, 2, "A"), Labelled(3, 5, "B"), Labelled(6, 8, None)]
HALF = [Labelled(0, 2, "A"), Labelled(3, 4, "B"), Labelled(6, 8, "C")]


def counts(*systems):
    """Return counts of documents, each linked as it is said."""
    result = DocumentCounts()
    for links in systems:
        result.add(GOLD, links, plain_title)
    return result


def test_a_perfect_system_has_every_ratio_at_1_and_an_interval_up_to_it():
    expected = (pytest.approx(0.05 ** (1 / 3)), 1)  # of three documents that are all perfect
    for scopes in measures(counts(ALL, ALL, ALL)).values():
        for score in scopes.values():
            assert all(score[name] == 1 and score["intervals"][name] == expected for name in RATIOS)


def test_measures_are_those_of_the_counts():
    found = measures(counts(HALF, HALF))
    shares = {
        (matching, scope): tuple(found[matching][scope][name] for name in ("precision", "recall"))
        for matching, scope in MEASURES
    }
    assert shares == {
        ("strong", "inkb"): (pytest.approx(1 / 3), pytest.approx(1 / 2)),
        ("strong", "nil"): (pytest.approx(1 / 3), pytest.approx(1 / 3)),
        ("weak", "inkb"): (pytest.approx(2 / 3), 1),
        ("weak", "nil"): (pytest.approx(2 / 3), pytest.approx(2 / 3)),
    }


def test_each_interval_is_of_its_own_measure_and_ratio():
    found = measures(counts(ALL, HALF, ALL, HALF, [], ALL))
    for matching, scope in MEASURES:
        score = found[matching][scope]
        for name in RATIOS:
            low, high = score["intervals"][name]
            assert low < score[name] < high or low <= score[name] == high == 1, (matching, scope, name)
    assert found["strong"]["inkb"]["intervals"]["f1"] != found["weak"]["inkb"]["intervals"]["f1"]


def test_a_comparison_has_both_scores_their_difference_and_p():
    compared = compare_counts(counts(*[HALF] * 8), counts(*[ALL] * 8))
    for matching, scope in MEASURES:
        score = compared[matching][scope]["f1"]
        assert score.score == 1 and score.versus < 1
        assert score.difference == pytest.approx(1 - score.versus)
        unseen = 1 - 0.05 ** (1 / 8)  # of eight documents with one difference
        ends = [score.difference + unseen * (bound - score.difference) for bound in (-1, 1)]
        assert score.interval == pytest.approx(ends)
        assert score.p == pytest.approx(2 / 2**8)


def test_a_comparison_in_reverse_has_the_opposite_sign():
    first, second = counts(ALL, HALF, ALL), counts(HALF, ALL, HALF)
    forward = compare_counts(first, second)["strong"]["nil"]["macro_f1"]
    opposite = compare_counts(second, first)["strong"]["nil"]["macro_f1"]
    assert forward.difference == -opposite.difference
    assert forward.interval == pytest.approx([-opposite.interval[1], -opposite.interval[0]])
    assert forward.p == opposite.p


def test_tables_have_a_line_for_each_measure(capsys):
    _write_measures([("set", measures(counts(ALL, HALF)))])
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 1 + len(MEASURES) and all(len(line) == 9 for line in lines)
    assert lines[1][:4] == ["set", "strong", "InKB", "60.00"]
    _write_versus([("set", compare_counts(counts(ALL, HALF), counts(ALL, ALL)))])
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[1:3] for line in lines[1:]] == [
        ["strong", "InKB"], ["strong", "with NIL"], ["weak", "InKB"], ["weak", "with NIL"],
    ]  # fmt: skip
    assert lines[1][4] == "100.00" and lines[1][7] == "1.0000"


# -- a second system


@pytest.fixture
def system(tmp_path):
    def read(*documents):
        write_links(tmp_path / "links.tsv", documents)
        return ComparedSystem(tmp_path / "links.tsv", "")

    return read


def test_a_second_system_has_links_by_the_ids_of_documents(system):
    compared = system(("1", HALF), ("2", ALL))
    links = [[*compared.links(Document(name, "12345678"))] for name in ("2", "1", "3")]
    assert links == [ALL, HALF, []] and compared.check(3) is None


def test_links_outside_of_a_text_and_unknown_documents_are_refused(system):
    compared = system(("1", ALL))
    with pytest.raises(UsageError, match="6 to 8 in the document '1', which ends at 7"):
        compared.links(Document("1", "1234567"))
    compared = system(("1", ALL), ("2", ALL))
    with pytest.raises(UsageError, match="none of the 2 documents"):
        compared.check(5)
    compared.links(Document("1", "12345678"))
    assert compared.check(5).startswith("1 documents of ")
    assert system().check(5) is None


def test_a_file_of_no_predictions_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("1 0 2 A\n")
    with pytest.raises(SourceError, match="expected 4 tab-separated fields"):
        ComparedSystem(tmp_path / "a.tsv", "")
    with pytest.raises(NotThere):
        ComparedSystem(tmp_path / "none.tsv", "")


# -- data sets and files


def gold_sets(tmp_path, **formats):
    """The data sets over an empty knowledge base."""
    (tmp_path / "a.tsv").write_text("-DOCSTART- (1)\nx\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "text": "x", "labels": []}\n')
    return _gold_sets([(tmp_path / name, kind) for name, kind in formats.items()], "", plain_title)


def test_data_sets_have_names(tmp_path):
    sets = gold_sets(tmp_path, **{"a.tsv": "aida"})
    assert [(name, [gold.document.id for gold in documents]) for name, documents in sets] == [("a", ["1"])]


def test_a_document_in_two_sets_of_unlike_formats_is_refused(tmp_path):
    sets = gold_sets(tmp_path, **{"a.tsv": "aida", "b.jsonl": "elevant"})
    with pytest.raises(UsageError, match="'1'"):
        [[*documents] for _, documents in sets]


def test_outputs_go_to_files_that_can_be_written_and_are_not_read(tmp_path):
    data, links, page = (tmp_path / name for name in ("data", "a.tsv", "a.HTML"))
    _check_outputs(None, None, [])
    _check_outputs(links, page, [data])
    for predictions, report in ((data, None), (None, data), (page, page)):
        with pytest.raises(UsageError):
            _check_outputs(predictions, report, [data])
    with pytest.raises(UsageError, match=r"a\.htm"):
        _check_outputs(None, tmp_path / "a.htm", [])
    with pytest.raises(NotThere):
        _check_outputs(tmp_path / "none" / "a.ttl", None, [])
