"""Which knowledge base is taken where none is named: the default, the only one, or the one used last."""

import re
from pathlib import Path

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.errors import NotThere, UsageError
from tests.cli_helpers import run
from tests.small_kb import build


@pytest.fixture
def home(tmp_path):
    """A home with `animals` and `plants`, none of which has been used."""
    build(tmp_path, [Entity("dog", "dog"), Alias("dog", "dog")], name="animals").close()
    build(tmp_path, [Entity("oak", "oak"), Alias("oak", "oak")], name="plants").close()
    return tmp_path


def link(home, text, *args):
    return run("link", "-", "--home", home, *args, given=text.encode())


def test_of_several_without_a_default_the_one_used_last_is_taken_and_named(home):
    done = link(home, "a dog")
    assert done.code == 2
    assert "which knowledge base?" in done.err and "kgkit kb default NAME" in done.err
    assert link(home, "a dog", "--kb", "animals").code == 0
    done = link(home, "a dog")
    assert '"entity":"dog"' in done.out
    assert done.err.startswith("knowledge base: animals (the one used last); --kb NAME, or `kgkit kb default")
    assert link(home, "a dog", "--quiet").err == ""
    assert run("candidates", "oak", "--kb", "plants", "--home", home).code == 0
    assert '"entity":"oak"' in link(home, "an oak").out


def test_a_second_knowledge_base_leaves_the_first_in_use(tmp_path):
    build(tmp_path, [Entity("dog", "dog"), Alias("dog", "dog")], name="animals").close()
    assert link(tmp_path, "a dog").err == ""  # the only one need not be named
    build(tmp_path, [Entity("oak", "oak"), Alias("oak", "oak")], name="plants").close()
    assert '"entity":"dog"' in link(tmp_path, "a dog").out


def test_the_default_goes_before_the_one_used_last_and_the_variable_before_both(home, monkeypatch):
    link(home, "a dog", "--kb", "animals")
    assert run("kb", "default", "plants", "--home", home).err == "the default is plants now\n"
    done = link(home, "an oak")
    assert '"entity":"oak"' in done.out and done.err.startswith("knowledge base: plants (the default)")
    with kgkit.open_kb(home=home) as kb:
        assert kb.name == "plants"
    monkeypatch.setenv("KGKIT_KB", "animals")
    done = link(home, "a dog")
    assert '"entity":"dog"' in done.out and done.err.startswith("knowledge base: animals ($KGKIT_KB)")
    assert kgkit.link("a dog", home=home).links[0].kb == "animals"
    assert run("kb", "default", "--home", home).out == "animals\n"


def test_a_program_does_not_take_what_a_command_used_last(home):
    link(home, "a dog", "--kb", "animals")
    with pytest.raises(UsageError, match="which knowledge base"):
        kgkit.open_kb(home=home)


def test_a_default_that_is_not_there_is_an_error_that_names_it(home, monkeypatch):
    assert run("kb", "default", "minerals", "--home", home).code == 3
    run("kb", "default", "plants", "--home", home)
    assert run("kb", "rm", "plants", "--home", home).err == "removed plants, which was the default\n"
    assert link(home, "a dog").code == 0  # the only one
    monkeypatch.setenv("KGKIT_KB", "minerals")
    with pytest.raises(NotThere, match=r"minerals, \$KGKIT_KB, is not in .* there are: animals"):
        kgkit.open_kb(home=home)
    assert kgkit.open_kb("animals", home).name == "animals"


def test_the_default_is_shown_and_cleared(home):
    assert run("kb", "default", "--home", home).code == 2
    run("kb", "default", "plants", "--home", home)
    assert run("kb", "default", "--home", home) == (0, "plants\n", "plants is the default\n")
    assert run("kb", "default", "--clear", "--home", home).err == "there is no default now\n"
    assert run("kb", "default", "plants", "--clear", "--home", home).code == 2
    assert run("kb", "default", "--home", home).code == 2


def test_a_home_that_cannot_be_written_to_can_be_read(home):
    (home / "cache").mkdir(exist_ok=True)
    (home / "cache" / "recent-kb").mkdir()
    assert link(home, "a dog", "--kb", "animals").code == 0


@pytest.mark.parametrize(
    "command, takes_recent",
    [
        *((name, True) for name in ("link", "candidates", "show", "path", "nearest", "reconcile", "kb info")),
        *((name, False) for name in ("evaluate el", "evaluate wsd", "train linker", "kb verify", "embed")),
    ],
)
def test_the_help_says_whether_the_kb_that_was_used_last_is_taken(command, takes_recent):
    shown = " ".join(run(*command.split(), "--help").out.replace("│", " ").split())
    assert "or the only one" in shown and ("the one used last" in shown) is takes_recent
    manual = (Path(__file__).parents[2] / "docs/commands.md").read_text(encoding="utf-8")
    [taking] = re.findall(r"the only one;([^.]*)take of several the one that\sthey used last", manual)
    assert (f"`{command}`" in taking) is takes_recent
