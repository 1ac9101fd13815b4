"""Health, metrics and logs."""

import json
import logging
import os
import sys

import pytest
from prometheus_client import CollectorRegistry

from kgkit.serving.app import readiness
from kgkit.serving.logs import JSONFormatter, RequestLog, configure_logging
from kgkit.serving.metrics import ServiceMetrics
from tests.toys import run_python

# A process counts and ends; another one counts too, and shows the sum.
WORKERS = """
import os, sys
from kgkit.serving.metrics import ServiceMetrics
pid = os.fork()
metrics = ServiceMetrics()
metrics.count_request("GET", "/v1/kbs", 200, 0.01)
metrics.observe_process(3 if pid == 0 else 5, 1, 2, 0)
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
sys.stdout.write(metrics.exposition().decode())
"""


def metric(text, name):
    """Return the values of a metric by its labels."""
    lines = [line for line in text.splitlines() if line.startswith(name)]
    return {line.split(" ")[0].removeprefix(name): float(line.split(" ")[1]) for line in lines}


def test_a_service_is_ready_with_its_builds(client, served):
    answer = client.get("/health/ready").json()
    assert answer["status"] == "ready"
    assert answer["kbs"] == {name: served.kb(name).build for name in ("mini", "facts")}
    assert answer["problems"] == {}


def test_why_a_build_is_not_taken_is_said_without_a_path(served, monkeypatch):
    home = str(served.home.path)
    monkeypatch.setattr(served.resources, "_problems", {"mini": f"no file {home}/kbs/mini/x"})
    record = readiness(served)
    assert record["problems"] == {"mini": "no file …"}
    assert record["status"] == "ready"


def test_a_service_with_a_damaged_build_is_not_ready(client, served, monkeypatch):
    path = str(served.home.path / "kbs")
    monkeypatch.setattr(served.kb("mini").store, "damage_found", f"a row of {path} cannot be read")
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "damaged")
    assert list(answer.json()["problems"]) == ["mini"]
    assert path not in answer.text


def test_metrics_count_requests_by_route_and_status(client):
    def count():
        rows = metric(client.get("/metrics").text, "kgkit_requests_total")
        return rows.get('{method="GET",route="/v1/entity",status="404"}', 0.0)

    before = count()
    for _ in range(3):
        client.get("/v1/entity", params={"key": "a secret"})
    assert count() == before + 3
    text = client.get("/metrics").text
    assert "secret" not in text
    assert 'kgkit_request_seconds_bucket{le="+Inf",route="/v1/entity"}' in text
    assert client.get("/metrics").headers["content-type"].startswith("text/plain; version=")


def test_addresses_that_are_not_there_are_counted_together(client):
    for number in range(5):
        client.get(f"/nothing/{number}")
    rows = metric(client.get("/metrics").text, "kgkit_requests_total")
    assert rows['{method="GET",route="other",status="404"}'] >= 5
    assert not any("nothing" in labels for labels in rows)


def test_an_unusual_method_is_no_label_of_its_own():
    metrics = ServiceMetrics(CollectorRegistry())
    for number in range(10):
        metrics.count_request(f"METHOD{number}", "/x", 405, 0.1)
    rows = metric(metrics.exposition().decode(), "kgkit_requests_total")
    assert rows == {'{method="other",route="/x",status="405"}': 10.0}


def test_workers_are_shown_together_and_the_gauges_of_one_that_has_ended_go(tmp_path):
    done = run_python(WORKERS, PROMETHEUS_MULTIPROC_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert metric(done.stdout, "kgkit_requests_total") == {
        '{method="GET",route="/v1/kbs",status="200"}': 2.0
    }  # fmt: skip
    assert metric(done.stdout, "kgkit_waiting_requests")[""] == 5
    assert metric(done.stdout, "kgkit_workers")[""] == 1
    assert metric(done.stdout, "kgkit_linked_documents_total")[""] == 4


# -- logs ---------------------------------------------------------------------


def record_of(message, *args, error=None):
    return logging.LogRecord("kgkit.test", logging.WARNING, __file__, 1, message, args, error)


def test_a_log_line_is_json_with_time_level_and_message():
    line = json.loads(JSONFormatter().format(record_of("build %s of %s", "abc", "small")))
    assert line["message"] == "build abc of small"
    assert (line["level"], line["logger"], line["pid"]) == ("warning", "kgkit.test", os.getpid())
    assert line["time"].endswith("Z") and line["time"][10] == "T"


def test_of_an_error_its_kind_and_its_lines_are_logged_not_its_message():
    def fail():
        raise ValueError("the secret text of a request")

    try:
        fail()
    except ValueError:
        text = JSONFormatter().format(record_of("failed", error=sys.exc_info()))
    line = json.loads(text)
    assert line["error"] == "ValueError"
    assert line["frames"][-1].endswith(" fail")
    assert "secret" not in text


def test_a_request_is_a_line_with_its_route():
    reading, writing = os.pipe()
    RequestLog(writing).write("POST", "/v1/link", 200, 0.01234)
    os.close(writing)
    with os.fdopen(reading) as lines:
        line = json.loads(lines.read())
    assert (line["method"], line["route"], line["status"], line["ms"]) == ("POST", "/v1/link", 200, 12.34)


def test_a_log_that_cannot_be_written_stops_no_request():
    reading, writing = os.pipe()
    os.close(reading)
    RequestLog(writing).write("GET", "/", 200, 0.0)
    os.close(writing)
    RequestLog(writing).write("GET", "/", 200, 0.0)


@pytest.mark.parametrize(("quiet", "level"), [(False, logging.INFO), (True, logging.WARNING)])
def test_the_logs_of_the_process_go_to_one_handler(quiet, level):
    root = logging.getLogger()
    handlers, levels = root.handlers[:], (root.level, logging.getLogger("kgkit").level)
    try:
        configure_logging(quiet=quiet)
        (handler,) = root.handlers
        assert isinstance(handler.formatter, JSONFormatter)
        assert logging.getLogger("kgkit").level == level
        assert logging.getLogger("uvicorn.error").handlers == []
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        logging.getLogger("kgkit").setLevel(levels[1])


def test_openapi_says_what_problems_look_like(client):
    paths = client.get("/v1/openapi.json").json()["paths"]
    for path, operations in paths.items():
        if path.startswith("/v1/"):
            for operation in operations.values():
                problem = operation["responses"]["422"]["content"]["application/problem+json"]["schema"]
                assert problem["required"] == ["title", "status", "detail"]
    answer = client.get("/v1/entity?key=dgo.n.01").json()
    assert answer.keys() <= problem["properties"].keys() and answer.keys() >= set(problem["required"])
    assert "text/plain" in paths["/metrics"]["get"]["responses"]["200"]["content"]
