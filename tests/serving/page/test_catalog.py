"""Views of knowledge bases, models, runs and scores."""

import shutil

import pytest
from starlette.testclient import TestClient

from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests.serving.conftest import BASE_URL
from tests.serving.page.conftest import BROWSER, HTML
from tests.serving.page.html_reader import Page


def test_knowledge_bases_are_listed_with_what_they_have(read):
    page = read("/kbs")
    [row] = [row for row in page.rows if row[0].startswith("facts")]
    assert [cell.strip() for cell in row[1:4]] == ["9", "16", "9"]
    assert row[5] == "plane"
    assert "prior" in row[6]


def test_a_knowledge_base_says_what_it_is(read):
    page = read("/kb?name=facts")
    assert "Facts16" in page.words
    assert "is_a · has_kind" in page.words
    assert "plane: hand, 9 × 2" in page.words
    assert page.forms[0][1] == ["kb", "q"]
    assert "no knowledge base served here" in read("/kb?name=none", 422).words


def test_models_are_listed_and_say_what_they_need(read):
    page = read("/models")
    assert "/model?name=wsd-minilm" in page.links
    model = read("/model?name=wsd-minilm")
    assert "wsd" in model.words
    assert "sha256" not in model.words


@pytest.mark.parametrize("name", ["none", "../facts", "/etc/passwd", "", HTML])
def test_a_path_is_no_name_of_a_model(browser, name):
    answer = browser.get("/model", params={"name": name})
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_a_run_has_scores_settings_and_data_without_folders(read, page_home):
    page = read("/run?id=1")
    assert "kgkit evaluate el --data …" in page.words
    assert [f"set {HTML}", "el", "f1", "0.75", "12"] in page.rows
    assert "data.jsonl" in page.words
    assert str(page_home) not in page.text


def test_runs_are_listed_newest_first(read):
    page = read("/runs")
    assert "/run?id=1" in page.links
    assert "done" in page.words
    assert "None yet" in read("/runs?model=none").words


@pytest.mark.parametrize("number", ["2", "999999999999"])
def test_a_run_that_is_not_there_is_an_error(read, number):
    assert "no run" in read(f"/run?id={number}", 404).words


def test_scores_are_those_of_a_task_and_a_data_set(read):
    assert "0.75" in read("/scores?task=el").words
    page = read("/scores?task=wsd")
    assert "0.75" not in page.words
    assert {values.get("value") for values in page.named("option")} >= {"", "el", f"set {HTML}"}


def test_a_newer_build_that_is_not_taken_is_told(page_home, tmp_path, monkeypatch):
    home = tmp_path / "home"
    shutil.copytree(page_home, home)
    service = Service(ServiceSettings(kbs={"facts": ("prior",)}), Home(home))
    app = make_app(service)
    with TestClient(app, base_url=BASE_URL, headers=BROWSER) as client:
        reason = f"the build in {home}/kbs/facts has no vectors"
        monkeypatch.setattr(service.resources, "refresh", lambda: None)
        monkeypatch.setitem(service.resources._problems, "facts", reason)
        for path in ("/kbs", "/kb?name=facts"):
            page = Page(client.get(path).text)
            assert "has no vectors" in page.words
            assert str(home) not in page.text
