"""Facts of other entities."""

from benchmarks.other_facts import write_other_facts


def test_every_subject_keeps_its_number_of_facts_and_gets_those_of_others(tmp_path):
    lines = [f"word{number}\tis\tthing{number}" for number in range(50)]
    lines += [f"word{number}\thas\tpart{number}" for number in range(0, 50, 5)]
    (tmp_path / "kb.spo").write_text("\n".join([*lines, "not a fact", ""]))
    same = write_other_facts(tmp_path / "kb.spo", tmp_path / "other.spo")
    before, after = (
        [line.split("\t") for line in some]
        for some in (lines, (tmp_path / "other.spo").read_text().splitlines())
    )
    assert [subject for subject, *_ in after] == [subject for subject, *_ in before]
    assert sorted(fact for _, *fact in after) == sorted(fact for _, *fact in before)
    assert same == sum(triple in before for triple in after) < 10
