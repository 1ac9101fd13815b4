"""`kgkit kb publish`: back to an earlier build, and forward again; what a rebuild says of additions."""

import json

import pytest

import kgkit
from kgkit.home import Home
from tests.cli_helpers import run

FILE = '{"key": "acme", "label": "Acme"}\n{"key": "anvil", "label": "anvil"}\n'
MORE = '{"key": "pear", "label": "pear"}\n'


@pytest.fixture
def home(tmp_path):
    """A home whose KB `mine` has been added to."""
    (tmp_path / "mine.jsonl").write_text(FILE)
    (tmp_path / "more.jsonl").write_text(MORE)
    home = tmp_path / "home"
    kgkit.build_kb("jsonl", tmp_path / "mine.jsonl", name="mine", home=home)
    kgkit.add_to_kb("mine", tmp_path / "more.jsonl", home=home)
    return home


def builds(home):
    kb = Home(home).kb("mine")
    return kb.published(), kb.build_names()


def test_an_addition_can_be_taken_back_and_put_in_again(home):
    current, [first, second] = builds(home)
    assert current == second
    done = run("kb", "publish", f"mine@{first}", "--home", home)
    assert (done.code, done.out, done.err) == (0, "", f"mine is mine@{first} now\n")
    with kgkit.open_kb("mine", home=home) as kb:
        assert "pear" not in kb
    assert run("kb", "publish", f"mine@{second}", "--home", home, "--quiet").err == ""
    with kgkit.open_kb("mine", home=home) as kb:
        assert "pear" in kb
    assert builds(home) == (second, [first, second])


def test_the_catalog_hears_of_it(home):
    from kgkit.catalog import Catalog

    _, [first, _] = builds(home)
    run("kb", "publish", f"mine@{first}", "--home", home)
    with Catalog.open(Home(home)) as catalog:
        assert [build.name for build in catalog.builds("mine") if build.published] == [first]


def test_the_card_lists_the_other_builds(home):
    _, [first, _] = builds(home)
    assert f"other builds    {first}\n" in run("kb", "info", "mine", "--home", home).out


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("mine", 2, "which build of 'mine'?"),
        ("mine@0123456789ab", 3, "has no build '0123456789ab'; there are: "),
        ("other@0123456789ab", 3, "no knowledge base 'other'"),
    ],
)
def test_what_is_not_there_is_not_published(home, name, code, says):
    before = builds(home)
    done = run("kb", "publish", name, "--home", home)
    assert (done.code, says in done.err) == (code, True)
    assert builds(home) == before


def test_a_damaged_build_is_not_published(home):
    current, [first, _] = builds(home)
    data = Home(home).kb("mine").builds / first / "data.mdb"
    content = bytearray(data.read_bytes())
    content[5000] ^= 1
    data.write_bytes(content)
    done = run("kb", "publish", f"mine@{first}", "--home", home)
    assert (done.code, "cannot be published" in done.err) == (1, True)
    assert builds(home)[0] == current


def test_a_rebuild_warns_that_it_leaves_additions_behind(home, tmp_path):
    current, _ = builds(home)
    args = ("build-kb", "jsonl", tmp_path / "mine.jsonl", "--name", "mine", "--home", home)
    done = run(*args)
    assert done.code == 0
    [warning] = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert "more" in warning and f"kgkit kb publish mine@{current}" in warning
    assert "warning" not in run(*args).err


def test_what_is_dropped_is_shown(tmp_path):
    lines = [{"alias": "x", "key": "nobody"}, {"subject": "acme", "relation": "makes", "object": "anvill"},
             {"redirect": "old", "to": "gone"}]  # fmt: skip
    (tmp_path / "mine.jsonl").write_text(FILE + "".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "first.jsonl").write_text(FILE)
    shown = {
        "dropped: 1 × alias of no entity: 'x' → nobody",
        "dropped: 1 × redirect to no entity: old → gone",
        "dropped: 1 × triple with an unknown end: acme makes anvill",
    }
    home = ("--home", tmp_path / "home")
    done = run("build-kb", "jsonl", tmp_path / "mine.jsonl", "--name", "all", *home)
    assert shown <= set(done.err.splitlines())
    run("build-kb", "jsonl", tmp_path / "first.jsonl", "--name", "mine", *home)
    assert shown <= set(run("kb", "add", "mine", tmp_path / "mine.jsonl", *home).err.splitlines())


def test_a_kb_whose_link_became_a_folder_can_be_removed(home):
    kb = Home(home).kb("mine")
    target = kb.current.resolve()
    kb.current.unlink()
    kb.current.mkdir()
    (kb.current / "manifest.json").write_bytes((target / "manifest.json").read_bytes())
    assert run("kb", "rm", "mine", "--home", home).code == 0
    assert not kb.path.exists()


def test_the_build_that_goes_is_named_with_the_one_that_stays(tmp_path):
    (tmp_path / "town.jsonl").write_text('{"key": "main", "label": "Main"}\n')
    run("build-kb", "jsonl", tmp_path / "town.jsonl", "--name", "town", "--quiet", "--home", tmp_path)
    first = Home(tmp_path).kb("town").published()
    (tmp_path / "more.jsonl").write_text('{"key": "oder", "label": "Oder"}\n')
    done = run("kb", "add", "town", tmp_path / "more.jsonl", "--home", tmp_path)
    assert done.code == 0 and "removed build" not in done.err
    second = Home(tmp_path).kb("town").published()
    (tmp_path / "edits.jsonl").write_text('{"key": "oder", "label": "Odra"}\n')
    done = run("kb", "edit", "town", tmp_path / "edits.jsonl", "--home", tmp_path)
    assert f"removed build {first}; town@{second} can be published again\n" in done.err
    third = Home(tmp_path).kb("town").published()
    (tmp_path / "last.jsonl").write_text('{"key": "elbe", "label": "Elbe"}\n')
    done = run("kb", "add", "town", tmp_path / "last.jsonl", "--home", tmp_path)
    assert f"removed build {second}; town@{third} can be published again\n" in done.err
    fourth = Home(tmp_path).kb("town").published()
    (tmp_path / "town.jsonl").write_text('{"key": "main", "label": "Main (river)"}\n')
    done = run("build-kb", "jsonl", tmp_path / "town.jsonl", "--name", "town", "--home", tmp_path)
    assert f"removed build {third}; town@{fourth} can be published again\n" in done.err
    (tmp_path / "last.jsonl").write_text('{"key": "elbe", "label": "Elbe"}\n')
    assert run("kb", "add", "town", tmp_path / "last.jsonl", "--home", tmp_path, "--quiet").err == ""


def test_a_build_under_the_name_of_the_builder_says_which_one_it_replaces(tmp_path):
    for name in ("n1", "n2"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"key": "{name}", "label": "{name}"}}\n')
    assert "in the place" not in run("build-kb", "jsonl", tmp_path / "n1.jsonl", "--home", tmp_path).err
    done = run("build-kb", "jsonl", tmp_path / "n2.jsonl", "--home", tmp_path)
    said = f"warning: jsonl is built in the place of the older jsonl (source {tmp_path / 'n1.jsonl'})"
    assert done.code == 0 and said in done.err
