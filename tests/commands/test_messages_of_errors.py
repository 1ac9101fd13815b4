"""Wrong and half commands: one message that says all that is wrong, and a line that works."""

import shlex

import pytest

from kgkit.commands.examples import EXAMPLES
from kgkit.commands.output import Column, _fitting_widths
from tests.cli_helpers import build_mini, colourless, on_terminal, process, run
from tests.commands.test_whole import COMMANDS, VERBS
from tests.toys import REPOSITORY


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = build_mini(tmp_path_factory.mktemp("mini"))
    (home / "kbs" / "other").symlink_to(home / "kbs" / "mini")
    return home


@pytest.fixture
def texts(tmp_path):
    """A folder with a text, a binary file and a table."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "letter.txt").write_text("The dog barked.")
    (folder / "picture.png").write_bytes(bytes(range(256)))
    (folder / "names.csv").write_text("id,name\na,Ann\n")
    return folder


WRONG = [
    ("train linker", 2, "--name"),
    ("train kbert", 2, "--task"),
    ("train tagger --name x", 2, "--data"),
    ("evaluate wsd", 2, "--data"),
    ("kb add mini", 2, "FILE"),
    ("kb export mini", 2, "--output"),
    ("tag letter.txt", 2, "--model"),
    ("link --modle x", 2, "--model"),
    ("link --threshold 2", 2, "invalid value for '--threshold'"),
    ("build-kb tabel x.csv", 2, "did you mean 'table'?"),
    ("build-kb jsonl", 2, "needs to know its source: `kgkit build-kb jsonl PATH --name NAME`"),
    ("build-kb jsonl {texts}/names.csv", 1, "is a table: the builder 'table' reads it"),
    ("kb import {texts}/names.csv", 2, "'names.csv'"),
    ("embed mini", 2, "for example `kgkit embed wordnet --method text`"),
    ("link x --kb mnii", 3, "no file x"),
    ("link {texts}/letter.txt --kb mnii", 3, "(there are: mini, other); did you mean 'mini'?"),
    ("kb rm mnii", 3, "there are: mini, other; did you mean 'mini'?"),
    ("kb verify mnii", 3, "did you mean 'mini'?"),
    ("link {texts}/letter.txt --kb mini --model wsd-minlm", 3, "did you mean 'wsd-minilm'?"),
    ("link {texts}/picture.png --kb mini", 1, "is no text: it has NUL bytes"),
    ("clean --days x", 2, "invalid value for '--days'"),
]


@pytest.mark.parametrize(("line", "code", "message"), WRONG)
def test_a_wrong_command_says_what_is_wrong_and_what_works(line, code, message, home, texts):
    done = run(*line.format(texts=texts).split(), "--home", home)
    assert (done.code, done.out) == (code, "")
    assert message in done.err and done.err.startswith("error: ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_command_is_a_line_that_it_takes(name):
    command, (line, page) = COMMANDS[name], EXAMPLES[name]
    shown = colourless(run(*name.split()[1:], "--help").out)
    assert "Example:" in shown and f"docs/{page}" in shown
    if name in VERBS:
        assert command.make_context(name, shlex.split(line.removeprefix(name))).params
    assert (REPOSITORY / "docs" / page).is_file()


def test_a_narrow_terminal_cuts_no_number_and_no_word(home):
    shown = on_terminal("kb", "list", "--home", home, columns=50).out
    build = (home / "kbs" / "mini" / "current").readlink().name
    assert f"mini\t{build}\t" in shown and "…" not in shown


def test_the_default_is_marked(home):
    assert run("kb", "list", "--home", home).out.count("*") == 0
    for variables in ({"KGKIT_KB": "mini"},):
        listed = process("kb", "list", "--home", home, **variables).out.splitlines()
        assert [line.split("\t")[-1] for line in listed] == ["default", "*", ""]
        shown = on_terminal("kb", "list", "--home", home, columns=120, **variables).out
        assert "mini * " in shown and "other * " not in shown


@pytest.mark.slow
def test_the_shell_completes_names_in_the_home(home):
    for words, names in (
        ("kgkit kb info m", ["mini"]),
        ("kgkit kb rm ", ["mini", "other"]),
        ("kgkit models info w", ["wsd-minilm"]),
        ("kgkit build-kb wo", ["wordnet"]),
        ("kgkit link --model p", ["prior"]),
        ("kgkit vectors rm m", []),
    ):
        done = process(
            KGKIT_HOME=str(home), _KGKIT_COMPLETE="complete_bash", COMP_WORDS=words,
            COMP_CWORD=str(words.count(" ")),
        )  # fmt: skip
        assert done.out.split() == names


def test_a_table_that_is_too_wide_cuts_what_is_no_number():
    columns = [
        Column(heading="name"),
        Column(heading="count", align="right"),
        Column(heading="build", fit="keep"),
        Column(heading="meaning", wide=True),
    ]
    rows = [("a name of some length", "1,234,567", "0123456789ab", "what it means")]
    assert _fitting_widths(columns, rows, 100) == [21, 9, 12, 52]
    assert _fitting_widths(columns, rows, 43) == [10, 9, 12, 6]
    assert _fitting_widths(columns, rows, 38) is None
