"""Where a home lies, what it has in it, and which knowledge base is taken where none is named."""

from pathlib import Path

import pytest

import kgkit
from kgkit.errors import NotThere, UsageError
from kgkit.home import DEFAULT_KB, DefaultKB, Home, explicit_path, here_hint, is_name


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def full_home(tmp_path_factory):
    """A home with the knowledge bases `pets` and `towns`: not to be changed."""
    folder = tmp_path_factory.mktemp("full")
    for name in ("towns", "pets"):
        kgkit.build_kb("jsonl", [{"key": "a", "aliases": ["A"]}], name=name, home=folder)
    return Home(folder)


@pytest.fixture
def two(full_home, tmp_path):
    """A home of one's own with both knowledge bases."""
    (tmp_path / "kbs").symlink_to(full_home.path / "kbs")
    return Home(tmp_path)


@pytest.mark.parametrize("name", ["a", "A.b-c_1", "0", "x" * 64])
def test_names_of_folders_everywhere_are_names(name):
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".a", "-a", "_a", "a/b", "a\\b", "a b", "ä", "a\n", "\0", "x" * 65, "a:b", "a@b"]
)
def test_names_against_the_rule_are_refused_with_it(home, name):
    assert not is_name(name)
    with pytest.raises(UsageError, match="letters, digits"):
        home.kb(name)


def test_a_path_goes_before_the_variable_and_the_variable_before_the_platform(tmp_path, monkeypatch):
    import platformdirs

    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: Path("/platform") / name)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path))
    assert Home.find("/elsewhere").path == Path("/elsewhere")
    assert Home.find().path == tmp_path
    for value in ("", None):
        monkeypatch.setenv("KGKIT_HOME", "") if value == "" else monkeypatch.delenv("KGKIT_HOME")
        assert Home.find().path == Path("/platform/kgkit")


def test_a_relative_path_and_a_tilde_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somebody")
    assert Home.find("home").path == tmp_path / "home"
    assert Home.find("~/kgkit").path == Path("/somebody/kgkit")


def test_knowledge_bases_are_those_with_a_build_by_name(full_home, home):
    assert [kb.name for kb in full_home.kbs()] == ["pets", "towns"]
    for path in ("kbs/empty/builds", "kbs/no name", "kbs/.hidden"):
        (home.path / path).mkdir(parents=True)
    (home.path / "kbs" / "file").touch()
    assert home.kbs() == [] == Home(home.path / "absent").kbs()


def test_stopped_builds_are_listed_by_name(home):
    assert home.unfinished() == []
    for name in ("towns", "pets", "no name"):
        (home.cache / "parts" / name).mkdir(parents=True)
    assert [kb.name for kb in home.unfinished()] == ["pets", "towns"]


def test_the_only_knowledge_base_is_the_default_without_a_reason(full_home, tmp_path):
    (tmp_path / "kbs").mkdir()
    (tmp_path / "kbs" / "pets").symlink_to(full_home.path / "kbs" / "pets")
    assert Home(tmp_path).default_kb() == DefaultKB("pets", "")


def test_of_several_none_is_the_default_unless_it_is_set(two, monkeypatch):
    with pytest.raises(UsageError, match="pets, towns"):
        two.default_kb()
    two.default_file.write_text("towns\n")
    assert two.default_name == two.chosen_default == "towns"
    assert two.default_kb() == DefaultKB("towns", "the default")
    monkeypatch.setenv(DEFAULT_KB, "pets")
    assert two.chosen_default == "pets" and two.default_kb() == DefaultKB("pets", f"${DEFAULT_KB}")


def test_a_default_may_name_a_build(two):
    two.default_file.write_text("towns@0123456789ab")
    assert two.default_kb().name == "towns@0123456789ab"


def test_the_knowledge_base_used_last_is_the_default_of_commands_while_it_exists(two):
    two.cache.mkdir()
    two.recent_file.write_text("towns")
    assert two.default_kb(recent=True) == DefaultKB("towns", "the one used last")
    with pytest.raises(UsageError, match="which knowledge base"):
        two.default_kb()
    two.recent_file.write_text("removed")
    with pytest.raises(UsageError, match="which knowledge base"):
        two.default_kb(recent=True)


@pytest.mark.parametrize("by_variable", [True, False])
def test_an_absent_default_is_an_error_that_says_who_named_it(two, by_variable, monkeypatch):
    if by_variable:
        monkeypatch.setenv(DEFAULT_KB, "absent")
    else:
        two.default_file.write_text("absent")
    reason = r"\$KGKIT_KB" if by_variable else "the default"
    with pytest.raises(NotThere, match=rf"absent, {reason}.*pets, towns"):
        two.default_kb()


def test_a_default_file_that_is_no_text_names_nothing(two):
    two.default_file.write_bytes(b"\xff\xfe\x00")
    assert two.default_name == ""


def test_an_empty_home_says_how_to_build(home):
    with pytest.raises(NotThere, match="kgkit build-kb wordnet"):
        home.default_kb()


def test_a_tilde_begins_a_path(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert explicit_path("~") == tmp_path and explicit_path("~/x") == tmp_path / "x"
    assert explicit_path("~no-such-user-at-all") == Path("~no-such-user-at-all")


def test_what_lies_in_the_current_directory_is_named_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    assert "./x" in here_hint("x") and here_hint("y") == here_hint("") == ""


def test_a_knowledge_base_has_a_name_and_no_path(home):
    with pytest.raises(UsageError):
        kgkit.open_kb(Path("pets"), home=home.path)
    with pytest.raises(UsageError):
        kgkit.open_kb("./pets", home=home.path)
