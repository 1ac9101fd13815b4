"""The command line as a whole: its help, its manual, its streams and exit codes."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import requires
from pathlib import Path

import pytest
import typer

from kgkit.commands.app import Commands, app
from tests.cli_helpers import build_mini, colourless, process, run, started
from tests.toys import REPOSITORY, child_env, run_python

# What only commands of the models may load.
HEAVY = ("torch", "transformers", "faiss", "spacy", "sqlalchemy", "networkx", "pandas")


def tree(command, name):
    """Yield every command and group with its full name."""
    yield name, command
    if hasattr(command, "commands"):
        context = command.make_context(name, [], resilient_parsing=True)
        for word in command.list_commands(context):
            yield from tree(command.get_command(context, word), f"{name} {word}")


COMMANDS = dict(tree(typer.main.get_command(app), "kgkit"))
VERBS = [name for name, command in COMMANDS.items() if not hasattr(command, "commands")]


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("mini"))


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """A file that takes a while to link and gives more than a pipe holds."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    path.write_text('{"text": "The dog chased the mouse along the bank."}\n' * 100_000)
    return path


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_options_of_all_commands_may_stand_anywhere(home, place, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", "/nowhere")
    words = ["show", "dog.n.01", "--json"]
    for further in (["--home", home, "--quiet"], [f"--home={home}", "-q"]):
        done = run(*words[:place], *further, *words[place:])
        assert (done.code, done.err) == (0, "")
    assert os.environ["KGKIT_HOME"] == "/nowhere"


def test_behind_two_dashes_the_options_of_all_commands_are_texts(home):
    done = run("candidates", "--home", home, "--", "--quiet")
    assert done.code == 1 and "--quiet" in done.err


@pytest.mark.parametrize("further", [["--home"], ["--home", "a", "--home=b"]])
def test_a_home_without_a_value_and_a_second_one_are_refused(further):
    done = run("kb", "list", *further)
    assert done.code == 2 and "--home" in done.err


def test_the_commands_are_those_that_were_promised():
    assert set(VERBS) == {
        "kgkit build-kb", "kgkit show", "kgkit path", "kgkit candidates", "kgkit link", "kgkit tag",
        "kgkit predict", "kgkit tree",
        "kgkit du", "kgkit clean", "kgkit pack", "kgkit unpack",
        "kgkit reconcile", "kgkit kb edit", "kgkit serve", "kgkit mcp",
        "kgkit models list", "kgkit models info", "kgkit models verify", "kgkit models rm",
        "kgkit evaluate el", "kgkit evaluate ner", "kgkit evaluate wsd", "kgkit evaluate ppl",
        "kgkit evaluate cloze", "kgkit evaluate task",
        "kgkit train linker", "kgkit train kambert", "kgkit train kbert", "kgkit train encoder",
        "kgkit train kalm", "kgkit train knowbert",
        "kgkit train ebert", "kgkit train tagger", "kgkit train pmi",
        "kgkit embed", "kgkit index", "kgkit nearest",
        "kgkit align", "kgkit project",
        "kgkit vectors list", "kgkit vectors rm",
        "kgkit kb list", "kgkit kb info", "kgkit kb check", "kgkit kb default", "kgkit kb add",
        "kgkit kb diff",
        "kgkit kb export",
        "kgkit kb import", "kgkit kb verify", "kgkit kb rm", "kgkit kb prune", "kgkit kb publish",
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    assert COMMANDS[name].help
    shown = run(*name.split()[1:], "--help")
    assert shown.code == 0
    assert f"Usage: {name}" in colourless(shown.out)


@pytest.mark.parametrize("name", VERBS)
def test_every_option_has_help(name):
    unexplained = [parameter.name for parameter in COMMANDS[name].params if not parameter.help]
    assert unexplained == []


def test_the_manual_names_every_command_and_no_option_that_is_not_there():
    manual = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`{' '.join(name.split()[:2])}" not in manual] == []
    known = {
        option
        for command in COMMANDS.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", manual)) - known == {"--help"}


def loaded_by(*args):
    """Return the names of all modules that a command has loaded, and its standard output."""
    done = run_python(
        "import sys\nfrom kgkit.commands import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)",
        *args,
    )  # fmt: skip
    return set(done.stderr.splitlines()[-1].split()), done.stdout


def libraries(modules):
    return {name.partition(".")[0] for name in modules}


def verbs(modules):
    """Return the modules of commands among others."""
    own = {place.partition(":")[0] for place in Commands.PLACES.values()}
    return {name.removeprefix("kgkit.commands.") for name in modules} & own


def test_the_version_loads_no_command_and_of_libraries_that_of_the_command_line():
    loaded, shown = loaded_by("--version")
    assert shown.split()[0] == "kgkit" and verbs(loaded) == set()
    assert libraries(loaded) & {*HEAVY, "numpy", "lmdb", "msgspec", "asyncio", "rich", "pydantic"} == set()


def test_help_loads_none_of_the_heavy_libraries():
    loaded, _ = loaded_by("--help")
    assert libraries(loaded) & {*HEAVY, "numpy", "lmdb", "msgspec", "asyncio"} == set()


def test_a_command_of_a_group_loads_no_other():
    loaded, _ = loaded_by("kb", "list", "--help")
    assert verbs(loaded) == {"kb"}
    of_group = [name for name in loaded if name.startswith("kgkit.commands.kb.")]
    assert of_group == ["kgkit.commands.kb.list_kbs"]


def test_linking_with_priors_loads_no_other_command_and_none_of_the_heavy_libraries(home, tmp_path):
    (tmp_path / "text.txt").write_text("The dog barked.")
    loaded, linked = loaded_by("link", tmp_path / "text.txt", "--model", "prior", "--home", home)
    assert '"dog.n.01"' in linked
    assert verbs(loaded) == {"link"}
    assert libraries(loaded) & {*HEAVY, "asyncio", "rich"} == set()


@pytest.mark.skipif("pydantic" in str(requires("typer")), reason="another typer than constraints.txt has")
def test_reading_options_loads_no_pydantic(home):
    loaded, _ = loaded_by("show", "dog.n.01", "--home", home)
    assert "pydantic" not in loaded


@pytest.mark.parametrize(
    ("line", "completed"),
    [("kgkit ", [*Commands.PLACES]), ("kgkit k", ["kb"]), ("kgkit kb pu", ["publish"]), ("kgkit x", [])],
)
def test_the_shell_completes_commands(line, completed):
    count = str(len(line.split(" ")) - 1)
    done = process(_KGKIT_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=count)
    assert done.out.split() == completed


def test_the_version_is_printed():
    shown = run("--version")
    assert (shown.code, shown.out.split()[0]) == (0, "kgkit")


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "kgkit", "--version"],
        env=child_env(),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, b"kgkit", b"")


# -- usage ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["lnik"], "'link'"),
        (["link", "--modle", "x"], "--model"),
        (["build-kb"], "BUILDER"),
        (["candidates", "x", "-k", "0"], "-k"),
        (["embed", "x", "--method", "txt"], "'txt'"),
        (["build-kb", "no-such-builder"], "'no-such-builder'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(args, said):
    done = run(*args)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_without_a_command_the_help_is_shown():
    for args, usage in ([], "Usage: kgkit [OPTIONS]"), (["kb"], "Usage: kgkit kb [OPTIONS]"):
        done = run(*args)
        assert (done.code, done.err) == (2, "")
        assert usage in colourless(done.out)


# -- streams and signals ----------------------------------------------------


def test_a_missing_kb_is_exit_code_3_with_the_command_that_builds_it(tmp_path):
    done = process("show", "dog.n.01", "--kb", "wordnet", KGKIT_HOME=str(tmp_path))
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: no knowledge base 'wordnet'")
    assert "`kgkit build-kb wordnet`" in done.err
    assert "Traceback" not in done.err


def test_a_home_without_any_kb_says_how_to_build_one(tmp_path):
    done = run("show", "dog.n.01", "--home", tmp_path)
    assert done.code == 3
    assert "`kgkit build-kb wordnet`" in done.err


def test_with_several_kbs_one_has_to_be_named(home, tmp_path):
    for name in "one", "two":
        (tmp_path / "kbs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "kbs" / name).symlink_to(home / "kbs" / "mini")
    done = run("candidates", "dog", "--home", tmp_path)
    assert done.code == 2
    assert "one, two" in done.err
    assert run("candidates", "dog", "--home", tmp_path, "--kb", "two").code == 0


def test_a_kb_may_be_named_with_its_build(home):
    build = (home / "kbs" / "mini" / "current").readlink().name
    assert run("show", "dog.n.01", "--home", home, "--kb", f"mini@{build}").code == 0


def test_an_interrupted_command_says_so_and_leaves_no_output(home, large, tmp_path):
    output = tmp_path / "out.jsonl"
    with started("link", large, "-o", output, "--home", home, stderr=subprocess.PIPE) as child:
        deadline = time.monotonic() + 30
        while not [*tmp_path.iterdir()] and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=300)[1]
    *lines, last = said.decode().splitlines()
    # Python ends itself by the signal where it came while a string was executed, as for a dataclass.
    assert child.returncode in (130, -signal.SIGINT) and last == "interrupted" and not output.exists()
    assert all("--resume goes on behind them" in line for line in lines) and len(lines) < 2
    assert lines or not list(tmp_path.iterdir())  # what is written is kept where it is announced


def test_a_closed_pipe_is_silent(home, large):
    with started("link", large, "--home", home, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b'{"id"')
        child.stdout.close()
        said = child.stderr.read() if child.stderr else b""
    assert (child.returncode, said) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["kb", "list"], ["show", "dog.n.01", "--json"], ["candidates", "dog"]])
def test_a_full_disk_under_standard_output_is_one_line_and_exit_code_1(home, args):
    with (
        Path("/dev/full").open("wb") as full,
        started(*args, "--home", home, stdout=full, stderr=subprocess.PIPE) as child,
    ):
        said = child.communicate(timeout=300)[1].decode()
    assert (child.returncode, said) == (1, f"error: standard output: {os.strerror(28)}\n")


def test_results_are_utf_8_whatever_the_locale(home, tmp_path):
    (tmp_path / "text.txt").write_text("dog 苹果", encoding="utf-8")
    done = process(
        "link", tmp_path / "text.txt", "--home", home, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    )
    assert done.code == 0
    assert "苹果" in done.out


def test_an_argument_that_is_no_utf_8_is_refused(home):
    done = process("candidates", os.fsdecode(b"caf\xe9"), "--home", home)
    assert done.code == 2
    assert done.err.startswith("error: TEXT is not valid UTF-8")


def test_quiet_says_nothing_beside_results_and_errors(home):
    assert run("candidates", "no such thing", "--home", home).err
    assert run("candidates", "no such thing", "--home", home, "--quiet") == (1, "", "")
    assert run("show", "no such thing", "--home", home).err
