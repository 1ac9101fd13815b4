"""Starting Spark for a build, ending it, and what goes wrong with it in a sentence."""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from kgkit.building.options import BuildOptions
from kgkit.errors import BuildFailed, MissingExtra, UsageError, WriteFailed

__all__ = ["checked_for_spark", "explain_spark_errors", "settings", "spark_session"]

_LEAST_HEAP: Final = 1 << 30  # bytes; with less Spark does not start
_OURS: Final = 0.35  # of the memory is for Python, and rows on their way
_ENDING: Final = 20  # seconds that Spark is given to end by itself
_FULL: Final = "No space left on device"
_OF_WORKER: Final = re.compile(r"^kgkit\.errors\.BuildFailed: (.+)$", re.MULTILINE)
_CALLING: Final = "An error occurred while calling"
_OF_SOMEONE: Final = ("MASTER", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")
"""Variables that say that Spark has been set up; else it runs on this machine."""


def checked_for_spark(environ: Mapping[str, str] = os.environ) -> None:
    """Look for what can be missing before anything is read.

    Raises:
        MissingExtra: if there is no pandas: PySpark asks for it as it runs.
        UsageError: if there is no Java.
    """
    if find_spec("pandas") is None:
        raise MissingExtra("pandas", "spark")
    if "SPARK_REMOTE" in environ or environ.get("MASTER", "").startswith("sc://"):
        raise UsageError("Spark Connect cannot build: unset SPARK_REMOTE, and name the MASTER itself")
    started_by_spark = "PYSPARK_GATEWAY_PORT" in environ  # by spark-submit, with Java
    java = shutil.which("java", path=environ.get("PATH"))
    if not (started_by_spark or java or environ.get("JAVA_HOME")):
        raise UsageError(
            "Spark needs Java 17 or later, and there is no `java` on the PATH: install one "
            "(`apt install openjdk-17-jre-headless`), or set JAVA_HOME"
        )


def settings(folder: Path, options: BuildOptions, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what Spark is told as it is started.

    Args:
        folder: a folder for what does not fit into memory.
        options: options of the build.
        environ: the environment, which may say where Spark's master is.
    """
    options_of_spark = {
        "spark.app.name": "kgkit",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    master = options.master
    if master is None and not any(name in environ for name in _OF_SOMEONE):
        # A task whose worker was killed is repeated, as on a cluster.
        master = f"local[{options.workers},4]"
    if master is not None:
        options_of_spark["spark.master"] = master
    if _on_this_machine(master):
        quoted = str(folder).translate({ord(letter): f"\\{letter}" for letter in '\\"'})
        options_of_spark |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "localhost",
            "spark.driver.extraJavaOptions": f'-Djava.io.tmpdir="{quoted}" -XX:-UsePerfData',
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(str(Path(path).absolute()) for path in sys.path),
            "spark.local.dir": str(folder / "local"),
        }
    if master is not None and master.startswith("local["):
        heap = max(_LEAST_HEAP, int(options.memory * (1 - _OURS)))
        options_of_spark["spark.driver.memory"] = f"{heap >> 20}m"
    return options_of_spark


def _on_this_machine(master: str | None) -> bool:
    return master is not None and master.partition("[")[0] in ("local", "local-cluster")


@contextmanager
def spark_session(folder: Path, options: BuildOptions) -> Iterator[SparkSession]:
    """Give a session of Spark: of the Spark that this process has, else of one that ends afterwards.

    Args:
        folder: a folder of the build.
        options: options of the build.

    Raises:
        UsageError: if Spark cannot be started.
    """
    if SparkContext._active_spark_context is not None:
        yield _of_this_process(options.master)
        return
    handler = signal.getsignal(signal.SIGINT)
    gateway = _launch(folder, options) if SparkContext._gateway is None else None
    with _quiet():
        try:
            with _starting(folder):
                session = _session(gateway, options.master)
            yield session
        finally:
            _end(gateway)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, handler)  # the context has put its own there


def _session(gateway: Any, master: str | None) -> SparkSession:
    context = SparkContext(master=None if gateway else master, gateway=gateway)
    if _on_this_machine(context.master) and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    server: Any = context._accumulatorServer
    server.handle_error = _nothing
    return SparkSession(context)


def _nothing(*_: object) -> None:
    """Instead of a traceback on the terminal."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log of py4j where a call is broken off: the caller gets the exception."""

    def passes_filter(record: logging.LogRecord) -> bool:
        return "while sending command" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(passes_filter)
    try:
        yield
    finally:
        root.removeFilter(passes_filter)


def _of_this_process(master: str | None) -> SparkSession:
    session = SparkSession.builder.getOrCreate()
    present = session.sparkContext.master
    if master not in (None, present):
        raise UsageError(
            f"this process has a Spark session already, whose master is {present}: leave out the master, or "
            "stop that session first"
        )
    return session.newSession()


def _launch(folder: Path, options: BuildOptions) -> Any:
    """Start Java; what it says goes into a file."""
    (folder / "local").mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False).setAll([*settings(folder, options).items()])
    with _starting(folder), _log(folder).open("wb") as log:
        launch: Any = launch_gateway  # it says nothing of its types
        return launch(conf, {"stdout": log, "stderr": log})


@contextmanager
def _starting(folder: Path) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError, OSError, ValueError) as error:
        errors = [line for line in _log_lines(folder) if "rror" in line or "xception" in line]
        reason = errors[0] if errors else _first_line(error)
        raise UsageError(
            f"Spark cannot be started ({reason}): is the master right, and does `java -version` say 17 or "
            "later?"
        ) from error


def _end(gateway: Any) -> None:
    session, context = SparkSession._instantiatedSession, SparkContext._active_spark_context
    # Where Java has gone all this fails, the first call to it last of all.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        for running in (session, context):
            with suppress(Py4JError, OSError):
                if running is not None:
                    running.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if gateway is None or gateway.proc is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_ENDING)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    # Else PySpark takes it that Java runs as long as Python does.
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def explain_spark_errors(folder: Path) -> Iterator[None]:
    """Say of what goes wrong in Spark what to do next.

    Raises:
        BuildFailed: if Spark fails, as where workers were killed.
        WriteFailed: if the disk refuses.
        RuntimeError: a fault in a builder or in a query, with its traceback.
    """
    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        words = str(error)
        if _FULL in words:
            written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            free = shutil.disk_usage(folder).free
            raise WriteFailed(_FULL, written=written, free=free, where=folder) from error
        if match := _OF_WORKER.search(words):
            raise BuildFailed(match[1]) from error
        if "No module named" in words or "PYTHON_VERSION_MISMATCH" in words:
            raise BuildFailed(
                f"Spark's workers: {_reason(words)}. Install kgkit and the builder on every machine, in the "
                "versions they have here, and let PYSPARK_PYTHON name that Python"
            ) from error
        if isinstance(error, PythonException | AnalysisException):
            # The error itself can say nothing once Java has ended.
            raise RuntimeError(words) from None
        raise BuildFailed(
            f"Spark has failed: {_reason(words)}. If workers or Java were killed, memory has run out "
            "most often: give it more (--memory; on a cluster spark.executor.memory). The parts that were "
            f"read are kept; the same command goes on from them. What Spark has said is in {_log(folder)}"
        ) from error


def _reason(words: str) -> str:
    """Return the line that says what has happened, of a page of what Java was doing."""
    lines = [line.strip() for line in words.splitlines()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    sentences = causes or [line for line in lines if line and not line.startswith(_CALLING)] or [words]
    return sentences[-1 if causes else 0].removeprefix("Caused by: ").removeprefix(": ").rstrip(".")


def _log(folder: Path) -> Path:
    return folder.parent / "spark.log"


def _log_lines(folder: Path) -> list[str]:
    with suppress(OSError):
        return _log(folder).read_text(errors="replace").splitlines()
    return []


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
