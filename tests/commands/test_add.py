"""`kgkit kb add`, `kgkit build-kb jsonl` and the source `kb:NAME`: from lines in a file to links."""

import json
import os
from pathlib import Path

import pytest

import kgkit
from kb_builders.jsonl import JSONLBuilder
from kgkit.building.add import add_to_kb
from kgkit.building.build import Built
from kgkit.home import Home
from kgkit.store import verify
from tests.cli_helpers import install_builder, run
from tests.store.test_killed import die_at_every_step_of
from tests.toys import listing, run_python

TOWN = """\
{"kgkit": {"name": "Town", "licence": "CC0-1.0", "language": "en", "inverses": {"lies_on": "passes"}}}
{"key": "main", "label": "Main", "kind": "river", "aliases": [{"text": "Main", "count": 9}]}
{"key": "frankfurt", "label": "Frankfurt", "description": "a city", "kind": "town", "types": ["place"]}
{"subject": "frankfurt", "relation": "lies_on", "object": "main"}
{"redirect": "francfort", "to": "frankfurt"}
"""
MORE = """\
{"key": "offenbach", "label": "Offenbach", "description": "a town on the Main", "kind": "town"}
{"alias": "Main", "key": "offenbach", "count": 1}
{"alias": "Mainhattan", "key": "francfort", "count": 2}
{"subject": "offenbach", "relation": "lies_on", "object": "main"}
{"subject": "offenbach", "relation": "lies_on", "object": "atlantis"}
{"alias": "Elbe", "key": "elbe"}
{"alias": "Oder", "key": "oder"}
"""
BAD = {
    '{"key": "pier", "colour": "red"}': "there is no field 'colour'",
    '{"key": "pier" "label": "Pier"}': "not JSON",
    '{"subject": "pier", "relation": "near"}': "'object' is missing",
    '{"key": "pier", "label": 7}': "expected `str`, got `int`",
    '{"alias": "Pier", "key": "main", "count": -1}': "the count is -1",
}


@pytest.fixture(scope="session", autouse=True)
def _builders(tmp_path_factory):
    """What an installed kgkit has: the entry points of its builders, here `jsonl` alone under two names."""
    site = tmp_path_factory.mktemp("site")
    for name in "jsonl", "lines":
        install_builder(site / name, name, "kb_builders.jsonl:JSONLBuilder")
    with pytest.MonkeyPatch.context() as patch:
        for name in "jsonl", "lines":
            patch.syspath_prepend(site / name)
        yield


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def build(name: str = "town", text: str = TOWN) -> str:
    """Build a KB of *text*; return its build."""
    return kgkit.build_kb(JSONLBuilder(), write(f"{name}.jsonl", text), name=name).build


def published(name: str = "town") -> str:
    return str(Home.find(None).kb(name).published())


# -- kb add -----------------------------------------------------------------


def test_what_was_added_is_told_with_how_much_more_there_is():
    build()
    done = run("kb", "add", "town", write("more.jsonl", MORE))
    assert done.code == 0
    assert done.out == f"town@{published()}: 3 entities (+1), 2 triples (+1), 4 aliases (+2)\n"
    said = done.err.splitlines()
    assert said[0].startswith("added to town in ")
    assert said[0].endswith(f"town/builds/{published()}")
    assert [line.partition(": ")[2].partition(":")[0] for line in said[1:]] == [
        "2 × alias of no entity",
        "1 × triple with an unknown end",
    ]
    assert said[1].endswith(": 'Elbe' → elbe; 'Oder' → oder")


def test_what_was_dropped_before_is_not_told_again():
    build()
    run("kb", "add", "town", write("more.jsonl", MORE))
    done = run(
        "kb", "add", "town", write("third.jsonl", '{"alias": "Weser", "key": "weser"}\n{"key": "x"}\n')
    )
    removed, added, *dropped = done.err.splitlines()
    assert removed.startswith("removed build ") and added.startswith("added to town in ")
    assert dropped == ["dropped: 1 × alias of no entity: 'Weser' → weser"]


def test_lines_of_which_nothing_can_be_kept_are_not_said_to_be_there_already():
    build()
    done = run("kb", "add", "town", write("typo.jsonl", '{"alias": "Mainhattan", "key": "frankfort"}\n'))
    assert (done.code, done.out) == (
        0,
        f"town@{published()}: 2 entities (+0), 1 triples (+0), 2 aliases (+0)\n",
    )
    assert done.err.splitlines() == [
        "town has all of typo.jsonl that it can keep already: nothing was changed",
        "dropped: 1 × alias of no entity: 'Mainhattan' → frankfort",
    ]


def test_the_card_of_a_kb_says_what_it_extends_and_what_was_added():
    first = build()
    run("kb", "add", "town", write("more.jsonl", MORE))
    shown = [line.split() for line in run("kb", "info", "town").out.splitlines()]
    assert ["extends", first] in shown
    assert ["added", "more"] in shown


def test_what_was_added_is_linked_at_once_and_its_aliases_share_the_priors():
    build()
    run("kb", "add", "town", write("more.jsonl", MORE))
    [told] = map(json.loads, run("link", given=b"From Mainhattan to Offenbach").out.splitlines())
    assert [(link["start"], link["end"], link["entity"]) for link in told["links"]] == [
        (5, 15, "frankfurt"),
        (19, 28, "offenbach"),
    ]
    shares = json.loads(run("candidates", "main", "--json").out)
    assert [(one["entity"], round(one["prior"] * 12)) for one in shares] == [("main", 10), ("offenbach", 2)]


def test_a_file_that_was_added_is_not_added_again():
    build()
    more = write("more.jsonl", MORE)
    run("kb", "add", "town", more)
    build_before, files = published(), listing(Home.find(None).path / "kbs")
    done = run("kb", "add", "town", more)
    assert done == (
        0,
        f"town@{build_before}: 3 entities (+0), 2 triples (+0), 4 aliases (+0)\n",
        "town has all of more.jsonl already: nothing was changed\n",
    )
    copy = write("copy.jsonl", MORE)  # the same content under another name
    assert "nothing was changed" in run("kb", "add", "town", copy).err
    assert "nothing was changed" in run("kb", "add", "town", "town.jsonl").err  # what it was built from
    after = listing(Home.find(None).path / "kbs")
    assert {name: kept for name, kept in after.items() if "builds/" in name} == {
        name: kept for name, kept in files.items() if "builds/" in name
    }


def test_another_builder_may_read_the_file():
    build()
    done = run("kb", "add", "town", write("more.jsonl", MORE), "--builder", "lines")
    assert done.code == 0
    assert "3 entities (+1)" in done.out


def test_another_kb_is_added_as_it_is():
    build()
    build("more", TOWN.replace("frankfurt", "mainz").replace('"main"', '"rhine"').replace("Main", "Rhine"))
    done = run("kb", "add", "town", "kb:more")
    assert done.code == 0
    assert "4 entities (+2), 2 triples (+1)" in done.out
    assert run("path", "mainz", "rhine", "--kb", "town").code == 0
    assert "has all of kb:more already" in run("kb", "add", "town", "kb:more").err
    [told] = json.loads(run("kb", "info", "town", "--json").out)["added"]
    assert (told["name"], told["version"], told["licence"]) == ("more", published("more"), "CC0-1.0")


def test_one_build_of_another_kb_is_added():
    build()
    old = build("more", '{"key": "one"}\n')
    build("more", '{"key": "two"}\n')
    assert run("kb", "add", "town", f"kb:more@{old}").code == 0
    assert run("show", "one", "--kb", "town").code == 0
    assert run("show", "two", "--kb", "town").code == 3


def test_a_kb_that_is_not_there_is_exit_code_3_and_the_error_names_those_that_are():
    build()
    for args in ("twon", "town.jsonl"), ("town", "kb:twon"):
        done = run("kb", "add", *args)
        assert (done.code, done.out) == (3, "")
        assert "no knowledge base 'twon'" in done.err
        assert "town" in done.err.replace("twon", "")


def test_one_build_cannot_be_added_to():
    first = build()
    done = run("kb", "add", f"town@{first}", write("more.jsonl", MORE))
    assert (done.code, done.out) == (2, "")
    assert "name the KB alone" in done.err


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_exit_code_1_with_file_and_line_and_changes_nothing(line):
    first = build()
    before = listing(Home.find(None).path / "kbs/town/builds")
    done = run("kb", "add", "town", write("bad.jsonl", f'{{"key": "quay"}}\n\n{line}\n'))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: bad.jsonl:3: ")
    assert BAD[line] in done.err
    assert "Traceback" not in done.err
    assert published() == first
    assert listing(Home.find(None).path / "kbs/town/builds") == before


def test_a_folder_without_entities_is_exit_code_1():
    build()
    Path("folder").mkdir()
    done = run("kb", "add", "town", "folder")
    assert done.code == 1
    assert "entities.jsonl" in done.err


def test_an_entity_that_says_otherwise_is_refused():
    first = build()
    done = run("kb", "add", "town", write("new.jsonl", '{"key": "main", "label": "Moenus"}\n'))
    assert done.code == 1
    assert "has 'main' already, with another label" in done.err
    assert published() == first


# -- build-kb jsonl, and kb:NAME ------------------------------------


def test_lines_are_built_into_a_kb_that_links():
    done = run("build-kb", "jsonl", write("t.jsonl", TOWN), "--name", "town")
    assert done.code == 0
    assert done.out == f"town@{published()}: 2 entities, 1 triples, 2 aliases\n"
    told = json.loads(run("kb", "info", "town", "--json").out)
    assert (told["source"]["name"], told["source"]["licence"], told["language"]) == ("Town", "CC0-1.0", "en")
    assert (told["smoothing"], told["generator"]) == (1.0, "alias")
    [linked] = map(json.loads, run("link", given="Über Frankfurt".encode()).out.splitlines())
    assert [(link["start"], link["end"], link["entity"]) for link in linked["links"]] == [
        (5, 14, "frankfurt")
    ]


def test_without_a_source_the_builder_says_that_it_needs_one():
    done = run("build-kb", "jsonl")
    assert (done.code, done.out) == (2, "")
    assert "`kgkit build-kb jsonl PATH --name NAME`" in done.err


def test_a_builder_that_reads_files_says_so_of_a_kb():
    build()
    done = run("build-kb", "jsonl", "kb:town", "--name", "other")
    assert (done.code, done.out) == (2, "")
    assert "the builder jsonl reads files, no knowledge base" in done.err
    assert [kb.name for kb in Home.find(None).kbs() if kb.published()] == ["town"]


def test_a_builder_makes_a_kb_of_another_one(tmp_path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "upper_builder.py").write_text(
        "from kb_builders.jsonl import JSONLBuilder\n"
        "from kgkit.building import Alias, Entity\n"
        "class UpperBuilder(JSONLBuilder):\n"
        "    def derive(self, kb):\n"
        "        for entity in kb.entities('town'):\n"
        "            yield Entity(entity.key.upper(), entity.label.upper())\n"
        "            yield Alias(entity.label.upper(), entity.key.upper(), 1)\n"
    )
    install_builder(tmp_path / "site", "upper", "upper_builder:UpperBuilder")
    monkeypatch.syspath_prepend(tmp_path / "site")
    first = build()
    done = run("build-kb", "upper", "kb:town")
    assert (done.code, done.out) == (0, f"upper@{published('upper')}: 1 entities, 0 triples, 1 aliases\n")
    assert run("show", "FRANKFURT", "--kb", "upper").code == 0
    told = json.loads(run("kb", "info", "upper", "--json").out)["source"]
    assert (told["name"], told["version"], told["licence"]) == ("town", first, "CC0-1.0")
    assert told["path"] == f"kb:town@{first}"
    assert run("build-kb", "upper", "kb:twon").code == 3


# -- killed -----------------------------------------------------------------


def die_at_every_step(folder: str) -> None:
    """Print, for every step of an addition, what is left when it dies there; this process forks."""
    os.chdir(folder)
    base = Path("base").absolute()
    first = kgkit.build_kb(JSONLBuilder(), write("town.jsonl", TOWN), name="town", home=base).build
    write("more.jsonl", MORE)

    def change(home: Path) -> Built:
        return add_to_kb("town", "more.jsonl", builder=JSONLBuilder(), home=home)

    def report(home: Path) -> dict[str, object]:
        with kgkit.open_kb("town", home=home) as kb:
            new, keys, wrong = kb.build != first, [*kb.keys()], verify(kb.store.folder)
        again = change(home)
        left = sorted(path.name for path in Home(home).kb("town").builds.iterdir())
        after = again.manifest.entities, left == sorted([first, again.build]), verify(again.path)
        return {"new": new, "keys": keys, "wrong": wrong, "after": after}

    print(json.dumps(die_at_every_step_of(change, base, report)))


@pytest.mark.slow
def test_an_addition_that_is_killed_is_published_wholly_or_not_at_all(tmp_path):
    code = "import sys; from tests.commands.test_add import die_at_every_step as f; f(sys.argv[1])"
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert len(reports) > 20  # steps there were, or this tests nothing
    for report in reports:
        assert report["keys"] == ["main", "frankfurt", "offenbach"][: 2 + report["new"]]
        assert report["wrong"] == []
        assert report["after"] == [3, True, []]  # done again, it succeeds and leaves no rubbish
    new = [report["new"] for report in reports]
    assert new == sorted(new)
    assert (new[0], new[-1]) == (False, True)
