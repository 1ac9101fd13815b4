"""Tables of p(entity | mention) from elsewhere: what is read of them, and what is said of bad ones."""

import pytest

from kgkit.building import Aliases, Step
from kgkit.building.priors import priors_of
from kgkit.errors import SourceError

# As Ganea and Hofmann write them: a tab behind the last entry, underscores, commas in titles.
COUNTED = (
    "Washington\t9\t11968,5,George_Washington\t108956,4,Washington,_D.C.\t\n"
    "Washington D.C.\t3\t108956,3,Washington,_D.C.\t\n"
)
# As they write YAGO's dictionary.
NAMED = "Washington\t2\t11968,George_Washington\t108956,Washington,_D.C.\t\nthe 300\t1\t8,300,_Sparta\t\n"


@pytest.fixture
def table(tmp_path):
    """Writes a table."""

    def written(text, name="p_e_m.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def counts(path):
    """All counts of a table, added up as a build does it."""
    found = {}
    for record in priors_of(path):
        if isinstance(record, Aliases):
            for pair, count in record.counts.items():
                found[pair] = found.get(pair, 0) + count
    return found


def complaint(path):
    with pytest.raises(SourceError) as caught:
        counts(path)
    assert caught.value.path == path
    return caught.value


# -- what is read ---------------------------------------------------------------------


def test_a_mention_has_a_count_for_each_page(table):
    assert counts(table(COUNTED)) == {
        ("Washington", "George Washington"): 5,
        ("Washington", "Washington, D.C."): 4,
        ("Washington D.C.", "Washington, D.C."): 3,
    }


def test_in_a_dictionary_every_entry_counts_one(table):
    assert counts(table(NAMED)) == {
        ("Washington", "George Washington"): 1,
        ("Washington", "Washington, D.C."): 1,
        ("the 300", "300, Sparta"): 1,
    }


def test_shares_become_counts_by_the_total(table):
    text = "Paris\t200\t1,0.75,Paris\t2,0.25,Paris_(mythology)\t\nSeine\t8\t3,1,Seine\t\n"
    assert counts(table(text)) == {
        ("Paris", "Paris"): 150,
        ("Paris", "Paris (mythology)"): 50,
        ("Seine", "Seine"): 8,
    }


def test_shares_of_two_tables_that_were_added_are_brought_back_to_the_total(table):
    # 0.9 and 0.1 from one table, a half each from a dictionary, capped at 1.
    found = counts(table("Paris\t32\t1,1,Paris\t2,0.6,Paris_(mythology)\t\n"))
    assert found == {("Paris", "Paris"): pytest.approx(20), ("Paris", "Paris (mythology)"): pytest.approx(12)}


def test_shares_that_were_cut_off_are_missing(table):
    assert counts(table("Paris\t100\t1,0.5,Paris\t\n")) == {("Paris", "Paris"): 50}


def test_counts_of_shares_are_exact_so_that_their_sums_are_in_any_order(table):
    found = counts(table("x\t7\t1,0.1,A\t2,0.3,B\n"))
    one, other = found.values()
    assert [one, other] == pytest.approx([0.7, 2.1], abs=1e-6)
    assert all((count * 2**20).is_integer() for count in found.values())


def test_a_line_that_comes_again_is_added(table):
    assert counts(table(COUNTED * 3))["Washington", "George Washington"] == 15


def test_two_mentions_that_differ_in_case_stay_two(table):
    text = "paris\t1\t1,1,Paris\t\nParis\t2\t1,2,Paris\t\n"
    assert counts(table(text)) == {("paris", "Paris"): 1, ("Paris", "Paris"): 2}


def test_a_mention_without_a_page_says_nothing(table):
    assert counts(table("nobody\t0\t\nnothing\t0\n" + COUNTED)) == counts(table(COUNTED))


def test_counts_are_handed_on_by_the_thousand_and_lines_are_told(table):
    path = table("".join(f"m{n}\t2\t{n},1,A_{n}\t{n},1,B_{n}\t\n" for n in range(12_000)))
    records = [*priors_of(path)]
    assert max(len(record.counts) for record in records if isinstance(record, Aliases)) <= 10_100
    assert sum(record.units for record in records if isinstance(record, Step)) == 12_000
    assert sum(len(record.counts) for record in records if isinstance(record, Aliases)) == 24_000


# -- what is not ----------------------------------------------------------------------

GOOD = "a\t1\t1,1,A\t\n" * 3
BAD = {
    "one field": ("a\n", 4, "found one field"),
    "no total": ("a\t1,1,A\n", 4, "the total '1,1,A' is no number"),
    "no count": ("a\t1\t1,A\n", 4, "'1,A' is no id,count,title"),
    "a word for a count": ("a\t1\t1,many,A\n", 4, "the count 'many' is no number"),
    "no title": ("a\t1\t1,1,\n", 4, "'1,1,' is no id,count,title"),
    "no id": ("a\t1\t,1,A\n", 4, "',1,A' is no id,count,title"),
    "a negative count": ("a\t1\t1,-1,A\n", 4, "the count is -1: it has to lie between 0 and 1e\\+30"),
    "a count that is none": ("a\t1\t1,nan,A\n", 4, "the count is nan"),
    "a huge count": ("a\t1\t1,1e99,A\n", 4, "the count is 1e99"),
    "not UTF-8": (b"a\t1\t1,1,\xff\n", 4, "not UTF-8"),
    "a NUL": ("a\t1\t1,1,A\0\n", 4, "a NUL byte"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_first_bad_line_is_reported_with_its_number(table, name):
    bad, line, said = BAD[name]
    error = complaint(table(GOOD.encode() + (bad if isinstance(bad, bytes) else bad.encode())))
    assert error.line == line
    with pytest.raises(SourceError, match=said):
        raise error


def test_a_dictionary_with_an_entry_without_a_title_is_refused(table):
    error = complaint(table(NAMED + "x\t1\t17\n"))
    assert (error.line, "'17' is no id,title" in str(error)) == (3, True)


def test_a_table_without_titles_is_refused_as_a_whole(table):
    assert "no title" in str(complaint(table("a\t3\t1,2\t2,1\n")))
