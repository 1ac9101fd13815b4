"""`kgkit build-kb` and `kgkit kb …`."""

import json
import os
import shutil

import pytest

from kgkit.store import FORMAT
from tests.cli_helpers import build_mini, install_builder, on_terminal, run
from tests.mini_wordnet import SYNSETS, mini_wordnet
from tests.toys import REPOSITORY, build_toy, entities

BUILDER = "mini-wordnet"


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home with one KB, `mini`: not to be changed."""
    return build_mini(tmp_path_factory.mktemp("mini"))


@pytest.fixture
def builder(tmp_path, monkeypatch):
    """The name of a builder that comes with an installed package."""
    install_builder(tmp_path / "site", BUILDER, "kb_builders.wordnet:WordNetBuilder")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return BUILDER


def current(home, name):
    return (home / "kbs" / name / "current").readlink().name


# -- build-kb ---------------------------------------------------------------


def test_a_kb_is_built_from_its_source_under_the_name_it_is_given(builder, tmp_path):
    source = mini_wordnet(tmp_path / "source")
    done = run("build-kb", builder, source, "--name", "words", "--home", tmp_path / "home")
    assert done.code == 0
    assert done.out.startswith(f"words@{current(tmp_path / 'home', 'words')}: ")
    assert done.err.startswith("built words in ")
    assert run("show", "dog.n.01", "--home", tmp_path / "home").code == 0


def test_a_pattern_of_addresses_and_identifiers_are_options_of_a_build(tmp_path):
    source = tmp_path / "towns.jsonl"
    source.write_text('{"key": "York", "attributes": {"wikidata": "Q42462"}}\n')
    args = ("build-kb", "jsonl", source, "--name", "towns", "--home", tmp_path / "home")
    refused = run(*args, "--url-pattern", "javascript:{key}")
    assert refused.code == 2 and "does not begin with https:// or http://" in refused.err
    pattern = "https://www.wikidata.org/wiki/{wikidata}"
    assert run(*args, "--url-pattern", pattern, "--identifier", "wikidata").code == 0
    shown = run("kb", "info", "towns", "--home", tmp_path / "home").out
    assert pattern in shown and "identifiers" in shown
    card = json.loads(run("show", "York", "--home", tmp_path / "home", "--json").out)
    assert card["ids"] == {"wikidata": "Q42462"}
    assert card["url"] == "https://www.wikidata.org/wiki/Q42462"


def test_a_kb_goes_by_the_name_of_its_builder_unless_told_otherwise(builder, tmp_path):
    args = ("build-kb", builder, mini_wordnet(tmp_path / "source"), "--home", tmp_path / "home")
    assert run(*args).out.startswith(f"{BUILDER}@")
    told = json.loads(run("kb", "info", BUILDER, "--home", tmp_path / "home", "--json").out)
    assert (told["name"], told["builder"]) == (BUILDER, BUILDER)
    assert run(*args, "--quiet").err == ""
    assert "same content" in run(*args).err


def test_an_unknown_builder_is_a_usage_error_that_names_those_installed(builder, tmp_path):
    done = run("build-kb", "wordnt", "--home", tmp_path / "home")
    assert (done.code, done.out) == (2, "")
    assert BUILDER in done.err


def test_a_damaged_source_is_exit_code_1_with_file_and_line(builder, tmp_path):
    source = mini_wordnet(tmp_path / "source")
    lines = (source / "data.noun").read_text().splitlines()
    number = next(place for place, line in enumerate(lines, start=1) if not line.startswith(" "))
    lines[number - 1] = lines[number - 1][:20]
    (source / "data.noun").write_text("\n".join(lines) + "\n")
    done = run("build-kb", builder, source, "--home", tmp_path / "home")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {source / 'data.noun'}:{number}: ")
    assert "Traceback" not in done.err


def test_a_name_that_cannot_be_a_folder_is_refused(builder, tmp_path):
    source = mini_wordnet(tmp_path / "source")
    assert run("build-kb", builder, source, "--name", "../x", "--home", tmp_path).code == 2


@pytest.mark.slow
def test_progress_moves_on_a_terminal_and_leaves_only_the_result(builder, tmp_path):
    source = mini_wordnet(tmp_path / "source")
    args = ("build-kb", builder, source, "--home", tmp_path / "home")
    path = os.pathsep.join([str(tmp_path / "site"), str(REPOSITORY)])
    assert "building mini-wordnet" in on_terminal(*args, PYTHONPATH=path).out
    assert "building" not in on_terminal(*args, "--quiet", PYTHONPATH=path).out


def test_a_log_gets_a_line_now_and_then(monkeypatch, capsys):
    from kgkit.commands import messages

    now = iter([0.0, 10.0, 31.0, 40.0, 62.0])
    monkeypatch.setattr(messages.time, "monotonic", lambda: next(now))
    with messages.Messages().progress("building wikipedia") as tell:
        for part in range(4):
            tell(f"reading: {part} of 9 parts")
    assert capsys.readouterr().err.splitlines() == [
        "building wikipedia: reading: 1 of 9 parts",
        "building wikipedia: reading: 3 of 9 parts",
    ]


def test_engines_make_the_same_build_from_the_command_line(builder, tmp_path):
    source = mini_wordnet(tmp_path / "source")
    args = ("build-kb", builder, source, "--home", tmp_path / "home")
    own = run(*args)
    assert own.code == 0
    grouped = ("--engine", "local", "--memory", "300MB", "--workers", 2, "--name", "other")
    assert run(*args, *grouped).out.partition("@")[2] == own.out.partition("@")[2]
    assert run(*args, "--types", "synset", "--limit", 20, "--min-count", 1).code == 0
    some = run("kb", "info", builder, "--home", tmp_path / "home", "--json")
    assert json.loads(some.out)["counts"]["entities"].keys() == {"synset"}
    card = run("kb", "info", builder, "--home", tmp_path / "home").out
    assert "\n  options         limit 20, types synset, min_count 1\n" in card


@pytest.mark.parametrize("options", [("--memory", "lots"), ("--workers", 0), ("--engine", "cloud")])
def test_options_of_a_build_that_make_no_sense_are_exit_code_2(builder, tmp_path, options):
    source = mini_wordnet(tmp_path / "source")
    done = run("build-kb", builder, source, "--home", tmp_path / "home", *options)
    assert (done.code, done.out) == (2, "")
    assert not (tmp_path / "home").exists()


def test_pruning_takes_what_stopped_builds_have_read(tmp_path):
    home = build_toy(tmp_path).path.parents[3]
    for name in ("toy", "never-published"):
        (home / "cache" / "parts" / name / "work").mkdir(parents=True)
    assert run("kb", "prune", "never-published", "--home", home) == (0, "", "")
    assert run("kb", "prune", "--home", home) == (0, "", "")
    assert [*(home / "cache" / "parts").iterdir()] == []
    assert [*(home / "kbs").iterdir()] == [home / "kbs" / "toy"]
    assert "nothing to remove" in run("kb", "prune", "--home", home).err


# -- list and info ----------------------------------------------------------


def test_the_list_has_a_line_for_every_kb(home):
    lines = run("kb", "list", "--home", home).out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["name", "mini"]
    assert lines[1].split("\t")[1] == current(home, "mini")
    [told] = json.loads(run("kb", "list", "--home", home, "--json").out)
    assert told["builds"] == [told["build"]] == [current(home, "mini")]
    assert told["source"] == "WordNet 3.0"


def test_an_empty_home_has_an_empty_list_and_a_hint(tmp_path):
    done = run("kb", "list", "--home", tmp_path)
    assert (done.code, done.out) == (0, "")
    assert "`kgkit build-kb wordnet`" in done.err
    assert run("kb", "list", "--home", tmp_path, "--json", "--quiet") == (0, "[]\n", "")


def test_a_kb_that_cannot_be_used_is_listed_with_the_reason(home, tmp_path):
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    build_toy(tmp_path, name="toy", home=tmp_path / "home")
    folder = tmp_path / "home" / "kbs" / "mini" / "current"
    manifest = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(manifest.replace(f'"format": {FORMAT}', '"format": 99'))
    mini, toy = json.loads(run("kb", "list", "--home", tmp_path / "home", "--json").out)
    assert "error" in mini
    assert toy["entities"] > 0
    assert "mini" in run("kb", "list", "--home", tmp_path / "home").out
    done = run("show", "dog.n.01", "--kb", "mini", "--home", tmp_path / "home")
    assert done.code == 1
    assert "build-kb" in done.err


def test_info_is_the_manifest_with_name_path_and_size(home):
    told = json.loads(run("kb", "info", "mini", "--home", home, "--json").out)
    assert told["counts"]["entities"]["synset"] == len(SYNSETS)
    assert set(told["counts"]["entities"]) == {"synset", "lemma"}
    assert told["entities"] == sum(told["counts"]["entities"].values())
    assert told["triples"] == sum(told["counts"]["relations"].values())
    assert "hypernym" in told["counts"]["relations"]
    assert "hyponym" not in told["counts"]["relations"]
    assert {"aliases", "alias_rows", "source", "tables"} <= set(told)
    assert told["name"] == "mini"
    assert told["path"].endswith(f"mini/builds/{told['build']}")
    files = [home / "kbs/mini/current" / name for name in ("data.mdb", "surfaces.trigrams")]
    assert told["size"] == sum(path.stat().st_size for path in files)


def test_info_says_what_people_ask(home):
    shown = run("kb", "info", "--home", home).out
    assert shown.startswith(f"mini@{current(home, 'mini')}\n")
    for told in "WordNet 3.0", "Princeton", f"synset\t{len(SYNSETS)}", "hypernym\t", "\thyponym":
        assert told in shown


# -- verify, rm, prune ------------------------------------------------------


def test_a_sound_kb_is_verified(home):
    assert run("kb", "verify", "--home", home) == (0, f"mini@{current(home, 'mini')}: sound\n", "")
    told = json.loads(run("kb", "verify", "mini", "--home", home, "--json").out)
    assert (told["sound"], told["problems"]) == (True, [])


def test_a_kb_that_is_not_what_its_manifest_says_is_exit_code_1(home, tmp_path):
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    path = tmp_path / "home" / "kbs" / "mini" / "current" / "manifest.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "triples": told["triples"] + 1}))
    done = run("kb", "verify", "--home", tmp_path / "home")
    assert done.code == 1
    assert "count: " in done.out
    told = json.loads(run("kb", "verify", "--home", tmp_path / "home", "--json").out)
    assert told["sound"] is False
    assert told["problems"]


def test_a_removed_kb_is_gone(tmp_path):
    build_toy(tmp_path, name="one")
    build_toy(tmp_path, name="two")
    assert run("kb", "rm", "one", "--home", tmp_path / "home") == (0, "", "removed one\n")
    assert [
        kb["name"] for kb in json.loads(run("kb", "list", "--json", "--home", tmp_path / "home").out)
    ] == ["two"]
    done = run("kb", "rm", "one", "--home", tmp_path / "home")
    assert done.code == 3
    assert "there are: two" in done.err


def test_a_single_build_is_not_removed(home):
    done = run("kb", "rm", f"mini@{current(home, 'mini')}", "--home", home)
    assert done.code == 2
    assert "`kgkit kb prune`" in done.err
    assert run("show", "dog.n.01", "--home", home).code == 0


def test_prune_keeps_the_published_build(tmp_path):
    old = build_toy(tmp_path, pages=entities(2)).build
    new = build_toy(tmp_path, pages=entities(3)).build
    assert run("kb", "prune", "--home", tmp_path / "home") == (0, f"toy@{old}\n", "")
    assert run("kb", "prune", "toy", "--home", tmp_path / "home") == (0, "", "nothing to remove\n")
    assert json.loads(run("kb", "prune", "--json", "--home", tmp_path / "home").out) == []
    assert current(tmp_path / "home", "toy") == new
