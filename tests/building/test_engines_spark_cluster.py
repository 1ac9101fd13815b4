"""The engine of a cluster makes the KBs that the local one makes, whatever happens to its workers.

On real processes: Spark's `local-cluster` runs two executors beside the process that builds. They
are started once, for all tests: a build takes the Spark that its process has.
"""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import kgkit
from kgkit.building.build import build_kb
from kgkit.building.options import BuildOptions
from kgkit.errors import SourceError, UsageError
from tests.cluster_toys import CHAIN, ClusterBuilder, observed
from tests.toys import ToyBuilder, child_env, source_file

MASTER = "local-cluster[2,1,1024]"
# Two of them have a page in common, which cannot be twice in one knowledge base.
SAMPLES = {
    "two": (
        "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
        "enwiki-pages-articles-sample.xml.bz2",
    ),
    "one": ("enwiki-table-markup.xml.bz2",),
}

# For tables of some hundred rows: Java compiles little, and Spark nothing.
SOON = "-XX:TieredStopAtLevel=1"
SMALL = "--conf spark.sql.shuffle.partitions=2 --conf spark.sql.codegen.wholeStage=false pyspark-shell"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory):
    """Two executors; what they leave in Spark's own folder goes when they end."""
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no java")
    from kgkit.building.engines.spark_start import spark_session

    work = Path(pyspark.__file__).parent / "work"
    before = {*work.glob("*")}
    place = tmp_path_factory.mktemp("cluster") / "spark"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", SOON)
        with pytest.MonkeyPatch.context() as start:
            start.setenv("PYSPARK_SUBMIT_ARGS", SMALL)
            running = ExitStack()
            session = running.enter_context(spark_session(place, BuildOptions(engine="spark", master=MASTER)))
        with running:
            yield session
    for left in {*work.glob("*")} - before:
        shutil.rmtree(left)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def build(folder, builder, source, engine, name="kb", **options):
    return build_kb(builder, source, name=name, home=folder / f"home {engine}", engine=engine, **options)


def unfinished(folder):
    return sorted(path.name for path in (folder / "home spark" / "cache" / "parts" / "kb").glob("*/*"))


def test_the_toy_is_the_same_from_every_engine(tmp_path):
    built = [
        build(tmp_path, ToyBuilder(), source_file(tmp_path), engine)
        for engine in ("spark", "local", "memory")
    ]
    assert len({one.build for one in built}) == 1
    assert built[0].manifest.tables == built[2].manifest.tables
    assert built[0].dropped == built[1].dropped == built[2].dropped
    assert {reason: sorted(shown) for reason, shown in built[0].examples.items()} == {
        reason: sorted(shown) for reason, shown in built[2].examples.items()
    }
    assert unfinished(tmp_path) == []


def test_a_kb_is_the_same_though_a_worker_was_killed_in_the_middle(tmp_path, source):
    options = {"types": ["page", "x"], "min_count": 4}
    local = build(tmp_path, ClusterBuilder(), source, "local", **options)
    observed(source)
    (source / "kill").touch()
    spark = build(tmp_path, ClusterBuilder(), source, "spark", master=MASTER, **options)
    assert (source / "killed").exists()
    assert observed(source).count("2") == 2
    assert spark.build == local.build
    assert spark.manifest.tables == local.manifest.tables
    assert spark.dropped == local.dropped
    assert spark.dropped["redirect in a loop"] >= 300
    with kgkit.open_kb("kb", home=tmp_path / "home spark") as kb:
        assert kb[f"chain {CHAIN - 1}"] == kb["chain 1"] == kb["chain 0"]


def test_an_error_of_the_source_is_told_as_it_is_and_what_was_read_is_not_read_again(tmp_path, source):
    (source / "bad").touch()
    with pytest.raises(SourceError) as local:
        build(tmp_path, ClusterBuilder(), source, "local")
    observed(source)
    with pytest.raises(SourceError) as spark:
        build(tmp_path, ClusterBuilder(), source, "spark")
    assert str(spark.value) == str(local.value) == f"{source / 'bad'}:3: this is bad\n    'bad'"
    assert not (tmp_path / "home spark" / "kbs" / "kb" / "current").exists()
    done = {name[9] for name in unfinished(tmp_path) if name.endswith(".json")}
    # A worker has one core: `2` was begun when a part was done. Those that were being read may be given up.
    assert done and done <= {*observed(source)} - {"2"}
    assert "spark" not in unfinished(tmp_path)

    (source / "bad").unlink()
    again = build(tmp_path, ClusterBuilder(), source, "spark")
    assert done.isdisjoint(observed(source))
    assert again.build == build(tmp_path, ClusterBuilder(), source, "local").build


def test_a_fault_in_a_builder_comes_with_its_traceback(tmp_path, source):
    (source / "fault").touch()
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a fault of the builder"):
        build(tmp_path, ClusterBuilder(), source, "spark")


def test_another_master_than_that_of_the_running_spark_is_refused(tmp_path):
    with pytest.raises(UsageError, match="whose master is local-cluster"):
        build(tmp_path, ToyBuilder(), source_file(tmp_path), "spark", master="local[1]")


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_samples_of_wikipedia_are_the_same(samples, tmp_path, shared_data):
    wikipedia = pytest.importorskip("kb_builders.wikipedia")
    source = [shared_data / "wikipedia" / name for name in samples]
    spark, local = (
        build(tmp_path, wikipedia.WikipediaBuilder(), source, engine) for engine in ("spark", "local")
    )
    assert spark.build == local.build
    assert spark.manifest.tables == local.manifest.tables
    assert spark.dropped == local.dropped


def test_a_spark_of_its_own_is_quiet_and_leaves_nothing(tmp_path):
    source, home = tmp_path / "facts.jsonl", tmp_path / "a home [of] {é}*"
    source.write_text('{"key": "acme"}\n{"key": "anvil"}\n{"key": "cut off"}\n')
    told = subprocess.run(
        [sys.executable, "-m", "kgkit.commands", "build-kb", "jsonl", source, "--limit", "4",
         "--engine", "spark", "--workers", "1", "--home", home],
        env=child_env(TMPDIR=str(tmp_path), PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    # Where it takes long, a line of progress comes each half minute.
    assert {line.partition(" ")[0] for line in told.stderr.splitlines()} <= {"building", "built"}
    built = build_kb("jsonl", source, home=tmp_path / "memory", limit=4)
    assert told.stdout == f"jsonl@{built.build}: 2 entities, 0 triples, 2 aliases\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [home.name, source.name, "memory"]
    assert [path.name for path in (home / "cache").rglob("*")] == ["parts"]
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(home) not in processes
