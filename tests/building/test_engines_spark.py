"""What can be said of the engine of a cluster without starting Spark."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from kgkit.building.build import build_kb
from kgkit.building.options import BuildOptions
from kgkit.errors import BuildFailed, MissingExtra, SourceError, UsageError, WriteFailed
from tests.toys import ToyBuilder, run_python, source_file

SPARK = BuildOptions(engine="spark")

PAGE = """An error occurred while calling o5.parquet.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.Somewhere.do(Somewhere.scala:1)
Caused by: java.io.FileNotFoundException: /x does not exist
\tat java.Elsewhere.read(Elsewhere.java:2)
"""


@pytest.fixture
def start():
    pytest.importorskip("pyspark")
    from kgkit.building.engines import spark_start

    return spark_start


@pytest.fixture
def reading():
    pytest.importorskip("pyspark")
    from kgkit.building.engines import spark

    return spark


@pytest.fixture
def tables():
    pytest.importorskip("pyspark")
    from kgkit.building.engines import spark

    return spark


def build(folder, **options):
    return build_kb(ToyBuilder(), source_file(folder), home=folder / "home", engine="spark", **options)


# -- what is missing ----------------------------------------------------------------


def test_without_pyspark_the_error_names_the_extra(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("kgkit.building.engines.spark")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("py4j", "py4j.protocol", "pyspark"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"kgkit\[spark\]"):
        build(tmp_path)
    assert not (tmp_path / "home" / "kbs" / "toy" / "current").exists()


def test_the_engine_needs_no_duckdb(tmp_path):
    pytest.importorskip("pyspark")
    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "import kgkit.building.engines.run\n"
        "import kgkit.building.engines.spark"
    )
    assert run_python(code).stderr == ""


@pytest.mark.slow
def test_pyspark_is_loaded_for_its_engine_only(tmp_path):
    code = (
        "import sys; from pathlib import Path; from kgkit.building.build import build_kb\n"
        "from tests.toys import ToyBuilder, source_file\n"
        "folder = Path(sys.argv[1])\n"
        "build_kb(ToyBuilder(), source_file(folder), home=folder, engine='local')\n"
        "print({'pyspark', 'py4j'} & {*sys.modules})"
    )
    pytest.importorskip("duckdb")
    assert run_python(code, tmp_path).stdout == "set()\n"


def test_without_pandas_the_error_names_the_extra(start, monkeypatch):
    monkeypatch.setattr(start, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"'pandas'.*kgkit\[spark\]"):
        start.checked_for_spark()


def test_without_java_the_error_says_what_to_install(start, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UsageError, match="java"):
        build(tmp_path)
    assert not (tmp_path / "home" / "cache").exists()


def test_spark_that_started_this_process_has_java(start):
    start.checked_for_spark({"PYSPARK_GATEWAY_PORT": "1", "PATH": ""})


def test_java_that_cannot_run_spark_is_told_with_its_own_words(start, tmp_path):
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'Error: UnsupportedClassVersionError: version 61.0' >&2; exit 1\n")
    java.chmod(0o755)
    code = (
        "import sys; from pathlib import Path\n"
        "from kgkit.errors import UsageError; from tests.building.test_engines_spark import build\n"
        "try: build(Path(sys.argv[1]))\n"
        "except UsageError as error: print(error)"
    )
    told = run_python(code, tmp_path, JAVA_HOME=str(tmp_path / "java"))
    assert told.stdout.startswith("Spark cannot be started (Error: UnsupportedClassVersionError")
    assert told.stderr == ""


# -- what Spark is told -------------------------------------------------------------


def test_unless_spark_has_been_set_up_it_runs_on_this_machine(start, tmp_path):
    told = start.settings(tmp_path, SPARK._replace(workers=3), {})
    assert told["spark.master"] == "local[3,4]"
    assert told["spark.driver.host"] == "localhost"
    assert told["spark.local.dir"] == str(tmp_path / "local")
    assert told["spark.ui.enabled"] == "false"


@pytest.mark.parametrize("name", ["SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "MASTER"])
def test_a_spark_that_has_been_set_up_decides_where_it_runs(start, tmp_path, name):
    told = start.settings(tmp_path, SPARK, {name: "something"})
    assert not {"spark.master", "spark.driver.memory", "spark.local.dir", "spark.driver.host"} & {*told}


def test_a_master_that_is_named_is_taken(start, tmp_path):
    told = start.settings(tmp_path, SPARK._replace(master="spark://host:7077"), {"SPARK_HOME": "/spark"})
    assert told["spark.master"] == "spark://host:7077"
    assert not {"spark.driver.memory", "spark.local.dir", "spark.executorEnv.PYTHONPATH"} & {*told}


@pytest.mark.parametrize(("memory", "heap"), [(4 << 30, "2662m"), (256 << 20, "1024m")])
def test_on_one_machine_java_gets_its_share_of_the_memory(start, tmp_path, memory, heap):
    assert start.settings(tmp_path, SPARK._replace(memory=memory), {})["spark.driver.memory"] == heap


def test_workers_on_this_machine_find_what_this_process_finds(start, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", "/lib"])
    for master in ("local[2]", "local-cluster[2,1,1024]"):
        told = start.settings(tmp_path, SPARK._replace(master=master), {})
        assert told["spark.executorEnv.PYTHONPATH"] == f"{Path.cwd()}{os.pathsep}/lib"


# -- what goes wrong ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        ("Caused by: java.io.IOException: No space left on device", WriteFailed, "No space left"),
        ("java.lang.OutOfMemoryError: Java heap space", BuildFailed, "OutOfMemoryError.*--memory"),
        ("Trace\nkgkit.errors.BuildFailed: the machine m sees no f\n\n", BuildFailed, "^the machine m"),
        (
            PAGE,
            BuildFailed,
            r"java.io.FileNotFoundException: /x does not exist",
        ),
    ],
)
def test_what_spark_says_in_a_page_is_said_in_a_sentence(start, tmp_path, words, error, told):
    from py4j.protocol import Py4JError

    place = tmp_path / "spark"
    place.mkdir()
    with pytest.raises(error, match=told) as raised, start.explain_spark_errors(place):
        raise Py4JError(words)
    assert "\n" not in str(raised.value)


# -- parts on workers ---------------------------------------------------------------


def work(reading, folder, builder, home, **told):
    from kgkit.building.engines.parts import PartsFolder
    from kgkit.building.sources import Part
    from kgkit.text import folding

    parts = PartsFolder(home, "work", folding())
    parts.create()
    reports = parts.path / "spark"
    reports.mkdir(exist_ok=True)
    source = told.get("source", source_file(folder))
    found = [Part(source, name, lambda name=name: builder.observe(source, name)) for name in builder.records]
    return reading._Work(parts, reports, [*enumerate(found)], (), False, reading.kgkit_version())


def places(*numbers):
    import pyarrow as pa

    return iter([pa.RecordBatch.from_pydict({"id": [number]}) for number in numbers])


def failure(reading, told):
    import msgspec

    (file,) = told.reports.glob("failed-*.json")
    return msgspec.json.decode(file.read_bytes(), type=reading._Failure).error()


def test_a_worker_writes_the_part_as_the_local_engine_does(reading, tmp_path):
    from kgkit.building.engines.parts import observe_parts

    told = work(reading, tmp_path, ToyBuilder(), tmp_path / "far")
    rows = [row for batch in reading.observe_batches(told, places(1, 0)) for row in batch.to_pylist()]
    assert [row["number"] for row in rows] == [1, 0]
    here = work(reading, tmp_path, ToyBuilder(), tmp_path / "here")
    parts = [part for _, part in here.parts]
    files = observe_parts(
        here.folder, parts, (), lambda parts, units: None, workers=1, steps=False, limit=None
    )
    assert [told.folder.file(number).read_bytes() for number in (0, 1)] == [
        file.read_bytes() for file in files
    ]
    assert told.folder.observation(1) == here.folder.observation(1)
    assert rows[0]["records"] == told.folder.observation(1).records


def test_an_error_of_the_source_goes_through_a_file(reading, tmp_path):
    source = source_file(tmp_path)

    class Bad(ToyBuilder):
        def observe(self, source, part):
            yield from super().observe(source, part)
            raise SourceError("is bad", path=source, line=7, text="what")

    told = work(reading, tmp_path, Bad(), tmp_path / "far")
    assert [*reading.observe_batches(told, places(0))] == []
    error = failure(reading, told)
    assert isinstance(error, SourceError)
    assert str(error) == str(SourceError("is bad", path=source, line=7, text="what"))
    assert (error.path, error.line, error.text) == (source, 7, "what")
    assert told.folder.observation(0) is None


def test_a_machine_that_does_not_see_the_source_is_named(reading, tmp_path):
    class Absent(ToyBuilder):
        def observe(self, source, part):
            yield from source.read_text()

    told = work(reading, tmp_path, Absent(), tmp_path / "far", source=tmp_path / "elsewhere")
    assert [*reading.observe_batches(told, places(0))] == []
    with pytest.raises(BuildFailed, match="elsewhere"):
        raise failure(reading, told)


def test_a_machine_that_does_not_see_the_folder_is_named(reading, tmp_path):
    told = work(reading, tmp_path, ToyBuilder(), tmp_path / "far")
    shutil.rmtree(told.folder.path)
    with pytest.raises(BuildFailed, match="far"):
        next(reading.observe_batches(told, places(0)))


def test_a_machine_that_has_another_kgkit_is_named(reading, tmp_path):
    told = work(reading, tmp_path, ToyBuilder(), tmp_path / "far")
    with pytest.raises(BuildFailed, match=r"0\.0\.7"):
        next(reading.observe_batches(told._replace(version="0.0.7"), places(0)))


def test_a_part_that_another_worker_is_still_writing_is_not_disturbed(reading, tmp_path):
    told = work(reading, tmp_path, ToyBuilder(), tmp_path / "far")
    [*reading.observe_batches(told, places(0))]
    first = told.folder.file(0).read_bytes()

    class Slow(ToyBuilder):
        def observe(self, source, part):
            yield from list(super().observe(source, part))[:3]
            [*reading.observe_batches(told, places(0))]  # given to another worker in the meantime
            assert told.folder.file(0).read_bytes() == first
            yield from list(super().observe(source, part))[3:]

    [*reading.observe_batches(work(reading, tmp_path, Slow(), tmp_path / "far"), places(0))]
    assert told.folder.file(0).read_bytes() == first
    assert not [*told.folder.path.glob("*.new")]


def test_what_was_not_finished_is_removed_by_the_next_build(reading, tmp_path):
    told = work(reading, tmp_path, ToyBuilder(), tmp_path / "far")
    (told.folder.path / "part-00000.abc.new").touch()
    told.folder.create()
    assert not [*told.folder.path.glob("*.new")]


# -- files of a table ---------------------------------------------------------------


def test_the_files_of_a_table_come_in_the_order_of_the_tasks(tables, tmp_path):
    names = [
        "part-00002-aa-c000.zstd.parquet",
        "part-00010-aa-c000.zstd.parquet",
        "part-00010-aa-c001.zstd.parquet",
        "part-99999-aa-c000.zstd.parquet",
        "part-100000-aa-c000.zstd.parquet",
    ]
    for name in [*reversed(names), "_SUCCESS", f".{names[0]}.crc"]:
        (tmp_path / name).touch()
    assert [file.name for file in tables._in_order(tmp_path)] == names


def test_a_path_that_is_read_is_no_pattern_for_several(tables):
    path = Path("/a b/{c}[d]*?/é")
    assert tables._pattern(path) == r"file:/a b/\{c\}\[d\]\*\?/é"
    assert tables._uri(path) == "file:/a b/{c}[d]*?/é"
