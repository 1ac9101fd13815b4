"""What the catalog keeps beside KBs: vectors, models, runs, scores; and how rows are read and written."""

import datetime

import pytest
from sqlalchemy import select

from kgkit.building.registering import register
from kgkit.catalog import Catalog, Index, Model, Run, Score, Vectors
from kgkit.errors import CatalogError
from tests.toys import build_toy

NOON = datetime.datetime(2026, 11, 21, 12, 30, tzinfo=datetime.UTC)


@pytest.fixture
def catalog(catalogued):
    """The open catalog of a home with the KB `toy`."""
    catalogued.path.mkdir()
    register(catalogued, "toy", build_toy(catalogued.path.parent, home=catalogued.path).build)
    with Catalog.open(catalogued) as catalog:
        yield catalog


def a_run(catalog: Catalog, **says: object) -> Run:
    known = {
        "home": catalog.home, "command": "kgkit train tagger", "config": {}, "seeds": [], "data": {},
        "versions": {}, "device": "cpu", "started": NOON, "status": "running",
    }  # fmt: skip
    return Run(**{**known, **says})


def test_a_model_leads_back_to_the_build_and_the_vectors_it_was_made_for(catalog):
    [build] = catalog.builds("toy")
    vectors = Vectors(
        build_id=build.id, name="tucker", method="tucker", rows=build.entities, width=200, dtype="float32",
        config={"epochs": 20, "dropout": 0.3}, created=NOON,
    )  # fmt: skip
    catalog.add(vectors)
    index = Index(vectors_id=vectors.id, kind="hnsw", params={"m": 32}, created=NOON)
    model = Model(
        home=catalog.home, name="knowbert-toy", kind="knowbert", encoder="bert-base-uncased",
        build_id=build.id, vectors_id=vectors.id, config={"layers": [10, 11]}, created=NOON,
    )  # fmt: skip
    catalog.add(index, model)
    with catalog.reading() as session:
        found = session.scalars(select(Model).where(Model.name == "knowbert-toy")).one()
        near = session.scalars(select(Index)).one()
    assert found.build is not None
    assert found.vectors is not None
    assert f"{found.build.kb.name}@{found.build.name}" == f"toy@{build.name}"
    assert (found.vectors.width, found.vectors.config) == (200, {"epochs": 20, "dropout": 0.3})
    assert (near.vectors.name, near.kind, near.params) == ("tucker", "hnsw", {"m": 32})


def test_a_run_keeps_what_it_takes_to_do_it_again_and_what_it_measured(catalog):
    run = a_run(
        catalog, config={"lr": 3e-5, "名": "值"}, seeds=[1, 2], data={"train.txt": "ab" * 32},
        versions={"torch": "2.13.0"}, device="cuda:0",
    )  # fmt: skip
    catalog.add(run)
    with catalog.writing() as session:
        row = session.get_one(Run, run.id)
        row.ended, row.seconds, row.peak_memory = NOON + datetime.timedelta(hours=1), 3600.25, 80 * 2**30
        row.status, row.exit_code = "done", 0
        row.scores.append(Score(task="wsd", dataset="semeval2007", metric="f1", value=0.1 + 0.2, n=455))
    with catalog.reading() as session:
        found = session.get_one(Run, run.id)
    assert (found.config, found.seeds, found.data) == (run.config, [1, 2], {"train.txt": "ab" * 32})
    assert (found.started, found.ended) == (NOON, NOON + datetime.timedelta(hours=1))
    assert (found.seconds, found.peak_memory, found.exit_code) == (3600.25, 80 * 2**30, 0)
    [score] = found.scores
    assert (score.dataset, score.metric, score.value, score.n) == ("semeval2007", "f1", 0.1 + 0.2, 455)


def test_runs_come_newest_first_with_their_scores_and_may_be_those_of_one_model(catalog):
    model = Model(home=catalog.home, name="mine", kind="head", config={}, created=NOON)
    catalog.add(model)
    hours = [NOON + datetime.timedelta(hours=hour) for hour in (1, 3, 2)]
    score = Score(task="wsd", dataset="all", metric="f1", value=0.5, n=2)
    catalog.add(
        a_run(catalog, started=hours[0], model_id=model.id, scores=[score]),
        a_run(catalog, started=hours[1]),
        a_run(catalog, started=hours[2], model_id=model.id),
        a_run(catalog, home="/another"),
    )
    assert [run.started for run in catalog.runs()] == [hours[1], hours[2], hours[0]]
    newer, older = catalog.runs("mine")
    assert (newer.started, older.started) == (hours[2], hours[0])
    assert older.model is not None
    assert (older.model.name, older.scores[0].value, newer.scores) == ("mine", 0.5, [])
    assert catalog.runs("yours") == []


def test_a_moment_comes_back_in_utc_wherever_it_was_written(catalog):
    there = datetime.timezone(datetime.timedelta(hours=8))
    run = a_run(catalog, started=NOON.astimezone(there))
    catalog.add(run)
    with catalog.reading() as session:
        started = session.get_one(Run, run.id).started
    assert (started, started.tzinfo) == (NOON, datetime.UTC)


def test_a_score_is_measured_once_in_a_run(catalog):
    def score() -> Score:
        return Score(task="wsd", dataset="all", metric="f1", value=0.5, n=2)

    catalog.add(a_run(catalog, scores=[score()]), a_run(catalog, scores=[score()]))
    with pytest.raises(CatalogError, match=r"(?i)unique"):
        catalog.add(a_run(catalog, scores=[score(), score()]))


def test_what_refers_to_nothing_is_refused(catalog):
    with pytest.raises(CatalogError, match=r"(?i)foreign key"):
        catalog.add(Index(vectors_id=99, kind="flat", params={}, created=NOON))


def test_a_block_that_fails_has_written_nothing(catalog):
    with pytest.raises(ZeroDivisionError), catalog.writing() as session:
        session.add(a_run(catalog))
        session.flush()
        1 / 0  # noqa: B018
    with catalog.reading() as session:
        assert session.scalars(select(Run)).all() == []


def test_what_is_done_to_rows_that_were_read_is_not_kept(catalog):
    with catalog.reading() as session:
        session.add(a_run(catalog))
    [kb] = catalog.kbs()
    kb.name = "changed"
    assert [kb.name for kb in catalog.kbs()] == ["toy"]
    with catalog.reading() as session:
        assert session.scalars(select(Run)).all() == []
