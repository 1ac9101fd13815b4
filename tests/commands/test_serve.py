"""`kgkit serve`: what its command line becomes; what it does is in tests/serving."""

import importlib.util

import pytest

from kgkit.commands.serve import builds_by_kb, check_packages, models_by_kb
from kgkit.errors import MissingExtra, UsageError
from kgkit.serving import running
from tests.cli_helpers import run


@pytest.fixture
def settings(monkeypatch):
    """Settings of the services that would have run."""
    collected = []
    monkeypatch.setattr(
        running, "run_service",
        lambda settings, home, announce, *, quiet: collected.append((settings, quiet)),
    )  # fmt: skip
    monkeypatch.delenv("KGKIT_TOKEN", raising=False)
    return collected


def test_a_service_without_a_default_knowledge_base_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(
        running, "run_service", lambda settings, home, announce, *, quiet: announce("http://x/")
    )
    for arguments, expected in ([], True), (["--kb", "a"], False), (["--default", "a"], False):
        done = run("serve", "--home", tmp_path, *arguments)
        assert done.err.startswith("serving http://x/\n")
        assert ("no knowledge base is the default" in done.err) is expected


def test_a_service_is_on_loopback_with_all_knowledge_bases_unless_told_otherwise(settings):
    assert run("serve").code == 0
    ((service, quiet),) = settings
    assert (service.host, service.port, service.workers, service.token) == ("127.0.0.1", 8077, 1, None)
    assert (service.kbs, service.default_kb, quiet) == ({}, None, False)


def test_every_option_is_a_setting(settings, tmp_path):
    path = tmp_path / "token"
    path.write_text("0123456789abcdef")
    done = run(
        "serve", "--kb", "a=prior", "--kb", "b", "--default", "b", "--host", "0.0.0.0", "--port", "80",
        "--workers", "3", "--token-file", path, "--allow-host", "kg.example", "--allow-host", "www.example",
        "--allow-origin", "https://kg.example", "--limit", "seconds=2.5", "--limit", "documents=7",
        "--device", "cpu", "--quiet",
    )  # fmt: skip
    assert done.code == 0, done.err
    ((service, quiet),) = settings
    assert dict(service.kbs) == {"a": ("prior",), "b": ("auto",)}
    assert (service.default_kb, service.host, service.port, service.workers) == ("b", "0.0.0.0", 80, 3)
    assert service.token == "0123456789abcdef"
    assert service.allowed_hosts == ("kg.example", "www.example")
    assert service.allowed_origins == ("https://kg.example",)
    assert (service.limits.seconds, service.limits.documents) == (2.5, 7)
    assert (service.device, quiet) == ("cpu", True)


@pytest.mark.parametrize(
    ("kbs", "models"),
    [
        ([], {}),
        (["a"], {"a": ("auto",)}),
        (["a=prior", "a=gloss", "a=prior"], {"a": ("prior", "gloss")}),
        (["b=x", "a"], {"b": ("x",), "a": ("auto",)}),
        (["a", "a=auto"], {"a": ("auto",)}),
        (["a@1f=prior", "a", "b@2e"], {"a": ("prior", "auto"), "b": ("auto",)}),
    ],
)
def test_models_are_those_of_their_knowledge_base_in_order(kbs, models):
    assert list(models_by_kb(kbs).items()) == list(models.items())


@pytest.mark.parametrize(
    ("kbs", "builds"),
    [([], {}), (["a", "b=prior"], {}), (["a@1f", "a@1f=prior", "b"], {"a": "1f"}), (["a=x@2"], {})],
)
def test_builds_are_those_that_are_named(kbs, builds):
    assert builds_by_kb(kbs) == builds


@pytest.mark.parametrize("text", ["a@", "@1f", "@", "a@=prior"])
def test_a_build_without_a_name_is_refused(text):
    with pytest.raises(UsageError, match="a build is named as KB@BUILD"):
        builds_by_kb([text])


def test_a_knowledge_base_is_served_from_a_single_build():
    with pytest.raises(UsageError, match="two builds of a, 1f and 2e"):
        builds_by_kb(["a@1f", "a@2e=prior"])


@pytest.mark.parametrize("text", ["", "=prior", "a="])
def test_an_empty_name_is_refused(text):
    with pytest.raises(UsageError, match="it is KB, or KB=MODEL"):
        models_by_kb([text])


def test_a_package_that_is_missing_is_named_with_the_extra(monkeypatch):
    check_packages()
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "prometheus_client" else find_spec(name)
    )
    with pytest.raises(MissingExtra, match=r"'prometheus-client': pip install 'kgkit\[serve\]'"):
        check_packages()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--port", "70000"], "invalid value for '--port'"),
        (["--workers", "0"], "invalid value for '--workers'"),
        (["--limit", "speed=9"], "no limit named 'speed'"),
        (["--host", "0.0.0.0"], "a token is needed"),
    ],
)
def test_a_wrong_setting_is_one_line(settings, args, message):
    done = run("serve", *args)
    assert done.code == 2 and message in done.err and not settings
