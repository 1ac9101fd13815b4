"""Maps between spaces: anchors, the fit beside its definition, the check, and what is kept on disk."""

import json
import os
import shutil
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building import Entity
from kgkit.embedding.align import align_encoder, fitting
from kgkit.embedding.align.alignment import ABOUT, MAP, Alignment, fingerprint_of
from kgkit.embedding.align.anchors import Anchors, read_pairs, shared_words
from kgkit.embedding.align.fitting import (
    Check,
    Report,
    check,
    fit_map,
    map_rows,
    ranks_of,
    solve,
    split,
)
from kgkit.embedding.wikipedia2vec import Wikipedia2VecConfig, read_wikipedia2vec
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.errors import DamagedVectors, KBBusy, NotThere, SourceError, StaleVectors, UsageError
from kgkit.home import KBHome
from kgkit.vectors import Work
from kgkit.vectors.work import making
from tests.small_kb import build

safetensors = pytest.importorskip("safetensors.numpy")


def every(count):
    return Anchors(np.arange(count), np.arange(count))


def planted(seed, count, source, target, noise=0.0, total=None):
    """Return rows, what a map makes of them with noise, and the map."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(total or count, source)).astype(np.float32)
    weight = rng.normal(size=(target, source)).astype(np.float32)
    mapped = rows @ weight.T
    mapped += noise * rng.normal(size=mapped.shape) * np.abs(mapped).mean()
    return rows, mapped.astype(np.float32), weight


# -- anchors ----------------------------------------------------------------


def test_whole_words_are_those_that_no_other_piece_precedes():
    pieces = ["[PAD]", "[unused0]", "dog", "##s", "[", "##", "苹", "[CLS]", "cat", "dog"]
    assert vocabulary_words(pieces) == {"dog": 2, "[": 4, "苹": 6, "cat": 8}


def test_of_roberta_s_pieces_those_that_begin_a_word_are_whole():
    assert vocabulary_words(["<s>", "Ġdog", "dog", "Ġ", "ĠcafÃ©", "ĠCat"]) == {"dog": 1, "Cat": 5}


def test_of_sentencepieces_those_that_begin_a_word_are_whole():
    assert vocabulary_words(["<unk>", "▁dog", "s", "▁", "▁苹果"]) == {"dog": 1, "苹果": 4}


def test_a_word_piece_that_begins_with_a_maltese_letter_is_a_word_among_others():
    pieces = ["[CLS]", "the", "##s", "Malta", "Ġorna", "ra"]
    assert vocabulary_words(pieces) == {"the": 1, "Malta": 3, "Ġorna": 4, "ra": 5}
    assert vocabulary_words(["Ġdog", "##", "####", "s"]) == {"dog": 0}  # GPT-2 has such pieces too


def test_shared_words_meet_in_their_spelling():
    anchors = shared_words(["the", "Paris", "dog", "the"], ["[CLS]", "dog", "the", "Paris", "##dog"])
    assert anchors.source.tolist() == [2, 0, 1]
    assert anchors.target.tolist() == [1, 2, 3]


def test_an_uncased_tokenizer_takes_the_first_word_of_a_spelling_unless_the_word_itself_is_there():
    words = ["Paris", "PARIS", "Dog", "dog", "cat"]
    anchors = shared_words(words, ["dog", "paris", "cat"])
    assert [words[row] for row in anchors.source] == ["dog", "Paris", "cat"]
    assert shared_words(words, ["dog", "paris", "Cat"]).target.tolist() == [0]  # cased: not folded


def test_pairs_come_from_a_file_and_unknown_ones_are_left_out(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("Hund\tdog\r\nKatze\tcat\nHündchen\tdog\nVogel\tbird\nx\ty\n", encoding="utf-8")
    anchors = read_pairs(
        path, {"Hund": 7, "Katze": 3, "Hündchen": 9}.get, {"dog": 5, "cat": 1, "bird": 0}.get
    )
    assert anchors.source.tolist() == [3, 7]
    assert anchors.target.tolist() == [1, 5]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a\tb\nc\n", 2, "expected 2 tab-separated fields, found 1"),
        (b"a\tb\tc\n", 1, "found 3"),
        (b"\xff\tb\n", 1, "not UTF-8"),
        (b"x\ty\n", None, "none of its 1 pairs"),
        (b"", None, "none of its 0 pairs"),
    ],
)
def test_a_file_of_pairs_that_is_none_is_told(tmp_path, content, line, message):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=message) as caught:
        read_pairs(path, {"a": 0}.get, {"b": 0}.get)
    assert caught.value.line == line
    with pytest.raises(NotThere):
        read_pairs(tmp_path / "none", {}.get, {}.get)


# -- the fit ----------------------------------------------------------------


@given(
    seed=st.integers(0, 999),
    count=st.integers(1, 40),
    source=st.integers(1, 6),
    target=st.integers(1, 6),
    block=st.sampled_from([1, 3, 1000]),
)
def test_the_fit_is_that_of_least_squares_on_all_rows_at_once(seed, count, source, target, block):
    rows, mapped, _ = planted(seed, count, source, target, noise=0.3)
    expected = (np.linalg.pinv(rows.astype(np.float64)) @ mapped).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "_BLOCK", block)
        weight, rank = solve(rows, mapped, every(count))
    np.testing.assert_allclose(weight, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert rank == min(count, source)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e19])
def test_numbers_that_cannot_be_squared_are_refused(number):
    rows = np.eye(4, dtype=np.float32)
    wrong = rows.copy()
    wrong[2, 1] = number
    for source, target in ((wrong, rows), (rows, wrong)):
        with pytest.raises(UsageError, match="not finite, or too large to be squared: make them anew"):
            fit_map(source, target, every(4))


def test_columns_that_say_the_same_have_the_smallest_map():
    rows = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
    weight, rank = solve(rows, 2 * rows[:, :1], every(3))
    assert rank == 1
    np.testing.assert_allclose(weight, [[1, 1]], atol=1e-6)


def test_nearly_dependent_columns_are_still_told_apart():
    """The condition is 1e5: its square would be beyond what float32 resolves, and near float64's limit."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(500, 1))
    rows = np.hstack([one, one + 1e-5 * rng.normal(size=(500, 1))]).astype(np.float32)
    weight, rank = solve(rows, rows @ np.array([[1.0], [2.0]], np.float32), every(500))
    assert rank == 2
    np.testing.assert_allclose(weight, [[1, 2]], atol=0.05)


def test_a_planted_map_is_found():
    rows, mapped, weight = planted(2, 300, 8, 12)
    found, report = fit_map(rows, mapped, every(300))
    np.testing.assert_allclose(found, weight, atol=1e-5)
    assert report.train.accuracy == report.held_out.accuracy == {1: 1.0, 5: 1.0, 10: 1.0}
    assert report.held_out.error < 1e-5
    assert (report.anchors, report.rank, report.candidates) == (300, 8, 300)
    assert (report.train.anchors, report.held_out.anchors) == (270, 30)


def test_the_map_is_fitted_on_all_anchors_after_the_check():
    rows, mapped, _ = planted(5, 60, 4, 4, noise=0.5)
    weight, report = fit_map(rows, mapped, every(60))
    np.testing.assert_array_equal(weight, solve(rows, mapped, every(60))[0])
    train, held_out = split(every(60), 0)
    most = solve(rows, mapped, train)[0]
    assert report.train == check(most, rows, mapped, train)
    assert report.held_out == check(most, rows, mapped, held_out)


def test_a_number_that_is_the_same_but_for_rounding_is_not_fitted(caplog):
    """Entities have 40 times as much of it as words, as measured with all-MiniLM-L6-v2."""
    rows, mapped, _ = planted(14, 300, 4, 6, noise=0.3)
    rng = np.random.default_rng(0)
    dead = 1e-9 * rng.normal(size=(300, 1)).astype(np.float32)
    with_dead = np.hstack([rows, dead])
    found, report = fit_map(with_dead, mapped, every(300))
    assert report.rank == 4
    np.testing.assert_allclose(found[:, :4], solve(rows, mapped, every(300))[0], atol=1e-5)
    assert np.abs(found[:, 4]).max() < 1e-3  # else some 1e7
    assert not caplog.text  # more words would decide no more


def test_a_rescaled_map_changes_norms_and_no_neighbour():
    rows, mapped, _ = planted(15, 200, 4, 6, noise=0.5)
    rows[7] = 0
    (plain_weight, plain), (weight, scaled) = (
        fit_map(rows, mapped, every(200), rescale=rescale) for rescale in (False, True)
    )
    np.testing.assert_array_equal(plain_weight, weight)
    assert plain.held_out.accuracy == scaled.held_out.accuracy
    mean = np.linalg.norm(np.delete(mapped, 7, 0), axis=1).mean()
    assert scaled.target.mean == pytest.approx(mean)
    assert scaled.held_out.norms.mean == pytest.approx(mean)
    assert plain.held_out.norms.mean < mean  # least squares shrink
    for shape in ((200, 4), (10, 20, 4)):
        lengths = np.linalg.norm(map_rows(weight, rows.reshape(shape), mean), axis=-1)
        np.testing.assert_allclose(lengths.ravel(), np.where(np.arange(200) == 7, 0, mean), rtol=1e-5)


def test_fewer_anchors_than_numbers_give_the_smallest_map_and_a_warning(caplog):
    rows, mapped, _ = planted(6, 10, 20, 3)
    weight, _ = fit_map(rows, mapped, every(10))
    assert "10 anchors of rank 10 cannot decide a map of vectors of width 20" in caplog.text
    np.testing.assert_allclose(weight, (np.linalg.pinv(rows) @ mapped).T, atol=1e-4)


def test_a_map_that_fits_noise_is_warned_of(caplog):
    rng = np.random.default_rng(13)
    rows, target = (rng.normal(size=(45, width)).astype(np.float32) for width in (40, 5))
    assert fit_map(rows, target, every(45))[1].held_out.error > 1.5
    assert "few anchors for vectors of width 40" in caplog.text


def test_rows_of_zeros_are_no_anchors_and_no_neighbours():
    rows, mapped, weight = planted(7, 40, 3, 3)
    rows[:5] = 0
    mapped[5:10] = 0
    found, report = fit_map(rows, mapped, every(40))
    assert (report.anchors, report.candidates) == (30, 35)
    np.testing.assert_allclose(found, weight, atol=1e-5)


@pytest.mark.parametrize("anchors", [every(0), every(3)])
def test_without_an_anchor_nothing_is_fitted(anchors):
    zeros = np.zeros((3, 2), np.float32)
    with pytest.raises(UsageError, match="share nothing"):
        fit_map(zeros, zeros, anchors)


def test_one_anchor_is_not_held_out():
    report = fit_map(*planted(8, 1, 2, 2)[:2], every(1))[1]
    assert report.held_out is None
    assert report.train.anchors == 1


@given(count=st.integers(1, 300), seed=st.integers(0, 9))
def test_the_split_parts_the_anchors_the_same_way_each_time(count, seed):
    train, others = split(every(count), seed)
    assert sorted([*train.source, *others.source]) == list(range(count))
    assert len(others.source) == min(round(count * 0.1), count - 1)
    again = split(every(count), seed)
    assert [part.source.tolist() for part in again] == [train.source.tolist(), others.source.tolist()]


def rank_of_one(query, target, gold):
    """Return the place of a row among the neighbours of a query; it comes after those that are as near."""
    norms = np.linalg.norm(target, axis=1)
    cosines = [row @ query / norm if norm else -np.inf for row, norm in zip(target, norms, strict=True)]
    return 1 + sum(
        cosine > cosines[gold] - 1e-9 * np.linalg.norm(query)
        for place, cosine in enumerate(cosines)
        if place != gold
    )


@given(seed=st.integers(0, 999), total=st.integers(1, 30), block=st.sampled_from([1, 7, 1000]))
def test_ranks_agree_with_those_found_one_by_one(seed, total, block):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(total, 3)).astype(np.float32)
    target[rng.random(total) < 0.2] = 0
    gold = np.flatnonzero(target.any(axis=1))
    queries = rng.normal(size=(len(gold), 3)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "_BLOCK", block)
        ranks = ranks_of(queries, target, gold)
    assert ranks.tolist() == [
        rank_of_one(query.astype(float), target.astype(float), row)
        for query, row in zip(queries, gold, strict=True)
    ]


def test_a_row_that_is_there_twice_is_not_found_first():
    target = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    assert ranks_of(target, target, np.arange(3)).tolist() == [2, 2, 1]


def test_a_mapping_to_nothing_finds_nothing():
    target = np.eye(3, dtype=np.float32)
    assert ranks_of(np.zeros((3, 3), np.float32), target, np.arange(3)).tolist() == [3, 3, 3]


def test_of_many_anchors_some_are_checked(monkeypatch):
    monkeypatch.setattr(fitting, "_MOST_CHECKED", 20)
    rows, mapped, _ = planted(9, 200, 3, 3)
    measured = check(np.eye(3, dtype=np.float32), rows, mapped, every(200))
    assert measured.anchors == 200
    assert round(measured.accuracy[1] * 20) == pytest.approx(measured.accuracy[1] * 20)


def test_a_large_fit_takes_the_memory_of_a_block(monkeypatch):
    monkeypatch.setattr(fitting, "_BLOCK", 256)
    rows, mapped, _ = planted(10, 60_000, 8, 8)
    tracemalloc.start()
    solve(rows, mapped, every(60_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_500_000  # all in float64 would be 7.7 MB


# -- vectors and encoders ---------------------------------------------------


class FakeEncoder:
    """Has word pieces."""

    def __init__(self, pieces, rows, name="org/bert base"):
        self.pieces, self.rows, self.name = pieces, rows, name

    def word_pieces(self):
        return self.pieces, self.rows


NOTHING = Report(
    anchors=0, rank=0, candidates=0, train=Check(anchors=0, accuracy={}, error=0.0), held_out=None
)
PIECES = ["[PAD]", *[f"w{number}" for number in range(40)], "##s"]


@pytest.fixture
def space(tmp_path):
    """A KB with words and two entities, and an encoder whose pieces are a planted map of the words."""
    rows, _, weight = planted(11, 42, 3, 5)
    lines = [f"{name} {' '.join(map(repr, row))}\n" for name, row in zip(PIECES, rows.tolist(), strict=True)]
    path = tmp_path / "vectors.txt"
    path.write_text("ENTITY/Dog 1 2 3\nENTITY/Cat 0 1 0\n" + "".join(lines[1:-1]), encoding="utf-8")
    with build(tmp_path / "home", [Entity("Dog"), Entity("Cat"), Entity("Fish")]) as kb:
        vectors = read_wikipedia2vec(kb, Wikipedia2VecConfig(source=path))
        yield vectors, FakeEncoder(PIECES, rows @ weight.T), weight


def test_words_bring_entities_into_the_space_of_word_pieces(space):
    vectors, encoder, weight = space
    found = align_encoder(vectors, encoder)
    np.testing.assert_allclose(found.weight, weight, atol=1e-5)
    np.testing.assert_allclose(found.apply(vectors.gather([0, 1])), vectors.matrix[:2] @ weight.T, atol=1e-4)
    assert found.report.anchors == 40  # not [PAD], not ##s
    assert found.report.candidates == 42
    assert (found.source, found.target) == ("small/wikipedia2vec", "org/bert base")


def test_an_entity_without_a_vector_has_none_after_the_map(space):
    vectors, encoder, _ = space
    assert not align_encoder(vectors, encoder).apply(vectors.gather([2, 999])).any()


def test_rows_of_any_shape_are_mapped_and_other_widths_refused(space):
    vectors, encoder, _ = space
    found = align_encoder(vectors, encoder)
    assert found.apply(vectors.gather([[0, 1], [1, 2]])).shape == (2, 2, 5)
    assert found.apply([1, 2, 3]).shape == (5,)
    assert found.apply([1, 2, 3]).dtype == np.float32
    with pytest.raises(UsageError, match="rows of width 3"):
        found.apply([1, 2])


def test_a_map_is_kept_beside_its_vectors(space):
    vectors, encoder, _ = space
    found = align_encoder(vectors, encoder)
    (folder,) = vectors.folder.glob("align-org-bert-base-*")
    assert sorted(path.name for path in folder.iterdir()) == [ABOUT, MAP]
    assert (folder / MAP).stat().st_mode == (folder / ABOUT).stat().st_mode  # whoever reads one reads both
    written = json.loads((folder / ABOUT).read_bytes())
    assert written["report"]["held_out"]["accuracy"]["10"] == 1.0
    again = Alignment.load(vectors, encoder)
    np.testing.assert_array_equal(again.weight, found.weight)
    assert again.report == found.report
    assert again.fingerprint == found.fingerprint == fingerprint_of(encoder)


def test_a_map_is_not_written_beside_vectors_that_are_being_made_or_have_gone(space):
    vectors, encoder, _ = space
    kb = KBHome("small", vectors.folder.parents[2])
    with making(kb, "wikipedia2vec"), pytest.raises(KBBusy):
        align_encoder(vectors, encoder)
    shutil.rmtree(vectors.folder)
    vectors.folder.with_name("another").mkdir()
    found = Alignment(
        np.zeros((5, 3), np.float32), source=vectors.name, target="t", fingerprint="", report=None
    )
    with pytest.raises(StaleVectors, match="align it again"):
        found.save(vectors)


def test_a_rescaled_map_is_kept_as_one_and_replaced_by_a_plain_one(space):
    vectors, encoder, _ = space
    found = align_encoder(vectors, encoder, rescale=True)
    again = Alignment.load(vectors, encoder)
    assert again.norm == found.norm == pytest.approx(found.report.target.mean)
    np.testing.assert_allclose(
        np.linalg.norm(again.apply(vectors.gather([0, 1, 2])), axis=1), [found.norm, found.norm, 0], rtol=1e-5
    )
    assert np.linalg.norm(again.apply([1.0, 2.0, 3.0])) == pytest.approx(found.norm)
    align_encoder(vectors, encoder)
    assert Alignment.load(vectors, encoder).norm is None


def test_a_map_of_an_older_kgkit_can_be_read(space):
    vectors, encoder, _ = space
    found = align_encoder(vectors, encoder)
    (folder,) = vectors.folder.glob("align-*")
    about = json.loads((folder / ABOUT).read_bytes())
    del about["norm"]
    about["config"] = {"ridge": 0.1}
    for part in (about["report"]["train"], about["report"]["held_out"]):
        del part["norms"]
    for key in ("target", "entities", "labels"):
        del about["report"][key]
    (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    again = Alignment.load(vectors, encoder)
    assert (again.norm, again.report.entities) == (None, None)
    np.testing.assert_array_equal(again.weight, found.weight)


def named(vectors, target):
    weight = np.full((5, 3), len(target), np.float32)
    made = Alignment(weight, source=vectors.name, target=target, fingerprint="", report=NOTHING)
    return made.save(vectors)


def test_targets_whose_names_look_alike_have_maps_of_their_own(space):
    vectors, _, _ = space
    names = ["wordnet/text", "wordnet-text", "wordnet text", "中文", "日本語"]
    folders = [named(vectors, name) for name in names]
    assert len(set(folders)) == len(names)
    assert folders[1].name == "align-wordnet-text"
    assert set(vectors.folder.glob("align-*")) == set(folders)  # what vectors made anew keep
    assert all(path.name.isascii() for path in folders)


def test_while_an_older_map_is_removed_the_new_one_is_there(space, monkeypatch):
    vectors, encoder, _ = space
    align_encoder(vectors, encoder)
    real, seen = shutil.rmtree, []

    def slow(path, **options):
        if path.exists():
            real(path, **options)
            seen.append(Alignment.load(vectors, encoder).report.rank)

    monkeypatch.setattr(shutil, "rmtree", slow)
    align_encoder(vectors, encoder)
    assert seen == [3]


def test_a_map_to_another_encoder_of_that_name_is_refused(space):
    vectors, encoder, _ = space
    align_encoder(vectors, encoder)
    tuned = FakeEncoder(encoder.pieces, encoder.rows + np.float32(0.01))
    renamed = FakeEncoder([*encoder.pieces[:-1], "##t"], encoder.rows)
    for other in (tuned, renamed):
        with pytest.raises(UsageError, match=r"another org/bert base .*kgkit align"):
            Alignment.load(vectors, other)


def test_without_a_map_the_command_that_fits_one_is_told(space):
    vectors, encoder, _ = space
    with pytest.raises(NotThere, match="`kgkit align small/wikipedia2vec --encoder org/bert base` fits one"):
        Alignment.load(vectors, encoder)


def write_about(folder, **fields):
    about = json.loads((folder / ABOUT).read_bytes()) | fields
    (folder / ABOUT).write_text(json.dumps(about))


@pytest.mark.parametrize(
    "damage",
    ["cut", "gone", "about", "width", "pipe", "nan", "float64", "deep", "bytes", "negative", "infinite"],
)
def test_a_map_that_cannot_be_read_is_told(space, damage):
    vectors, encoder, _ = space
    found = align_encoder(vectors, encoder)
    (folder,) = vectors.folder.glob("align-*")
    match damage:
        case "cut":
            (folder / MAP).write_bytes((folder / MAP).read_bytes()[:-3])
        case "gone":
            (folder / MAP).unlink()
        case "about":
            (folder / ABOUT).write_bytes(b"{}")
        case "pipe":
            (folder / MAP).unlink()
            os.mkfifo(folder / MAP)
        case "nan":
            safetensors.save_file({"weight": np.full((5, 3), np.nan, np.float32)}, folder / MAP)
        case "float64":
            safetensors.save_file({"weight": np.zeros((5, 3))}, folder / MAP)
        case "deep":
            text = (folder / ABOUT).read_text()
            (folder / ABOUT).write_text(text.replace("{", '{"a": ' + "[" * 9999 + "]" * 9999 + ",", 1))
        case "bytes":
            (folder / ABOUT).write_bytes((folder / ABOUT).read_bytes().replace(b"small/", b"\xff\xfe/"))
        case "negative":
            write_about(folder, norm=-1.0)
        case "infinite":
            write_about(folder, norm=1e300)
        case "width":
            other = {"source": "", "target": encoder.name, "fingerprint": "", "report": found.report}
            Alignment(np.zeros((5, 2), np.float32), **other).save(vectors)
    with pytest.raises(DamagedVectors, match="kgkit align"):
        Alignment.load(vectors, encoder)


def test_vectors_without_words_cannot_be_aligned_by_words(tmp_path):
    with build(tmp_path, [Entity("Dog")]) as kb, Work(kb, "plain", {}) as work:
        work.matrix(1, 2)[:] = 1
        with pytest.raises(NotThere, match="keep no words"):
            align_encoder(work.publish("hand"), FakeEncoder(["dog"], np.ones((1, 2), np.float32)))


def test_words_may_be_paired_by_a_file(space, tmp_path):
    vectors, encoder, _ = space
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"w{number}\tw{number}\n" for number in range(30)), encoding="utf-8")
    assert align_encoder(vectors, encoder, pairs=path).report.anchors == 30
