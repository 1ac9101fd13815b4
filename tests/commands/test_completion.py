"""What the shell offers for each option and argument: names in the home of the command, and nothing else."""

from types import SimpleNamespace

import pytest

import kgkit
from kgkit.commands import completion
from kgkit.commands.completion import Completion, set_completion
from kgkit.errors import KgkitError
from kgkit.home import Home
from kgkit.versions import link_current

SHIPPED = ["names-minilm", "wsd-minilm"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with two knowledge bases, vectors of the first, a model, and hidden folders."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("pets", "towns"):
        kgkit.build_kb("jsonl", [{"key": "a", "aliases": ["A"]}], name=name, home=folder)
    for path in ("models/mine", "models/.new-1", "kbs/pets/vectors/text/1", "kbs/pets/vectors/.old-1"):
        (folder / path).mkdir(parents=True)
    (folder / "models" / "file").touch()
    link_current(folder / "kbs/pets/vectors/text", "1")
    return Home(folder)


@pytest.fixture(scope="module")
def builds(home):
    """The builds of the home by their knowledge bases."""
    return {kb.name: kb.build for kb in kgkit.kbs(home.path)}


def offer(parameter, home, incomplete="", command="kgkit link"):
    """Return the words that the shell offers for a parameter; None if it offers none of its own."""
    set_completion(parameter)
    if not hasattr(parameter, "shell_complete"):
        return None
    root = SimpleNamespace(params={"home": home and home.path})
    context = SimpleNamespace(find_root=lambda: root, command_path=command)
    words = parameter.shell_complete(context, incomplete)
    assert all(isinstance(word, Completion) and word.type == "plain" for word in words)
    return [word.value for word in words]


def option(name, metavar):
    return SimpleNamespace(param_type_name="option", opts=["-x", name], metavar=metavar)


def argument(metavar):
    return SimpleNamespace(param_type_name="argument", metavar=metavar)


@pytest.mark.parametrize(
    ("parameter", "names"),
    [
        (option("--kb", "KB"), ["pets", "towns"]),
        (option("--senses", "KB"), ["pets", "towns"]),
        (option("--model", "MODEL"), ["prior", "gloss", "tempered-gloss", "mine", *SHIPPED]),
        (option("--linker", "MODEL"), ["prior", "gloss", "tempered-gloss", "mine", *SHIPPED]),
        (option("--model", "NAME"), ["mine", *SHIPPED]),
        (option("--mentions", "NAME"), ["mine", *SHIPPED]),
        (option("--vectors", "NAME"), ["text"]),
        (option("--to", "KB/NAME"), ["pets/text"]),
        (argument("KB"), ["pets", "towns"]),
        (argument("KB/NAME"), ["pets/text"]),
        (option("--kb", None), None),
        (option("--output", "FILE"), None),
        (option("--data", "NAME"), None),
        (argument("FILE"), None),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_each_parameter_offers_the_names_of_its_type(home, parameter, names):
    assert offer(parameter, home) == names


def test_only_names_that_begin_as_the_typed_word_are_offered(home):
    assert offer(argument("KB"), home, "pe") == ["pets"]
    assert offer(argument("KB"), home, "x") == [] == offer(option("--vectors", "KB/NAME"), home, "towns/")


def test_behind_an_at_sign_builds_are_offered(home, builds):
    assert offer(argument("KB"), home, "pets@") == [f"pets@{builds['pets']}"]
    assert offer(argument("KB"), home, f"pets@{builds['pets'][:3]}") == [f"pets@{builds['pets']}"]
    assert offer(argument("KB"), home, "absent@") == []
    assert offer(argument("NAME@BUILD"), home) == [f"{name}@{builds[name]}" for name in ("pets", "towns")]


def test_behind_an_equals_sign_linkers_are_offered(home):
    both = option("--kb", "KB[=MODEL]")
    assert offer(both, home, "t") == ["towns"]
    assert offer(both, home, "pets=") == [
        f"pets={name}" for name in ("prior", "gloss", "tempered-gloss", "mine", *SHIPPED)
    ]
    assert offer(both, home, "pets=w") == ["pets=wsd-minilm"]


def test_a_name_of_a_command_on_models_is_that_of_a_model(home):
    assert offer(argument("NAME"), home, command="kgkit kb rm") == ["pets", "towns"]
    assert offer(argument("NAME"), home, command="kgkit models rm") == ["mine", *SHIPPED]


def test_builders_are_those_that_are_installed(home):
    assert {"wordnet", "jsonl", "table"} <= {*offer(argument("BUILDER"), home, command="kgkit build-kb")}


def test_the_usual_home_is_read_where_none_is_typed(home, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(home.path))
    assert offer(argument("KB"), None) == ["pets", "towns"]


@pytest.mark.parametrize("error", [KgkitError("damaged"), OSError("refused")])
def test_a_home_that_cannot_be_read_offers_nothing_and_raises_nothing(home, error, monkeypatch):
    def refuse(*_):
        raise error

    monkeypatch.setitem(completion.ARGUMENTS, "KB", refuse)
    assert offer(argument("KB"), home) == []


@pytest.mark.parametrize("word", ["a b@", "..@", "\0@"])
def test_words_that_can_name_no_knowledge_base_offer_nothing(home, word):
    assert offer(argument("KB"), home, word) == []


def test_an_empty_home_offers_the_models_that_come_with_kgkit(tmp_path):
    home = Home(tmp_path / "absent")
    assert offer(option("--model", "NAME"), home) == SHIPPED
    assert offer(argument("KB"), home) == [] == offer(option("--to", "KB/NAME"), home)
    assert not home.path.exists()
