"""Entry points of installed packages: whose is taken, and what a damaged package is told as."""

import sys

import pytest

from kgkit.errors import BuildFailed, DamagedModel, MissingExtra, UsageError
from kgkit.plugins import entry_point_names, find_entry_point, load_object, owner_of

GROUP = "kgkit.test_plugins"


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Return a function that installs a package with entry points, and modules."""

    def install(package, *lines, **modules):
        folder = tmp_path / package
        info = folder / f"{package.replace('-', '_')}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.syspath_prepend(folder)

    return install


def test_names_are_sorted_and_each_is_there_once(install):
    assert entry_point_names(GROUP) == []
    install("oak", "b = oak:B", "a = oak:A")
    install("ash", "a = ash:A", "c = ash:C")
    assert entry_point_names(GROUP) == ["a", "b", "c"]


def test_a_name_that_no_package_has_is_none(install):
    install("oak", "b = oak:B")
    assert find_entry_point(GROUP, "a", UsageError) is None


def test_the_one_package_that_has_a_name_is_taken(install):
    install("oak", "a = oak:A")
    entry = find_entry_point(GROUP, "a", UsageError)
    assert entry is not None and entry.value == "oak:A"
    assert owner_of(entry) == f"the entry point a of the package oak in the group {GROUP}"


@pytest.mark.parametrize("order", [("kgkit", "usurper"), ("usurper", "kgkit")])
def test_a_name_of_kgkit_is_its_own_wherever_packages_lie(install, order):
    for package in order:
        install(package, f"a = {package}_module:A")
    entry = find_entry_point(GROUP, "a", UsageError)
    assert entry is not None and entry.value == "kgkit_module:A"


@pytest.mark.parametrize("error", [DamagedModel, BuildFailed])
def test_two_strangers_with_one_name_are_an_error_that_names_them(install, error):
    install("oak", "a = oak:A")
    install("ash", "a = ash:A")
    with pytest.raises(error, match=f"ash, oak .*{GROUP}"):
        find_entry_point(GROUP, "a", error)


@pytest.mark.parametrize("name", ["oak", "kgkit"])
def test_a_package_that_has_a_name_twice_is_told_so_unless_it_is_kgkit(install, name):
    install(name, "a = first:A", "a = second:A")
    if name == "kgkit":
        assert find_entry_point(GROUP, "a", UsageError) is not None
        return
    with pytest.raises(UsageError, match=f"oak has 2 .*{GROUP}"):
        find_entry_point(GROUP, "a", UsageError)


# -- what a name stands for -------------------------------------------------


def test_a_target_is_imported_and_may_be_an_attribute_of_an_attribute():
    assert load_object("json:dumps", "it", UsageError) is __import__("json").dumps
    assert load_object("pathlib:Path.home", "it", UsageError)() is not None


@pytest.mark.parametrize(
    ("text", "target", "what"),
    [
        ("", "broken:nothing", "AttributeError: module 'broken' has no attribute 'nothing'"),
        ("", "broken:", "AttributeError"),
        ("", "broken_not_there:x", "ModuleNotFoundError: No module named 'broken_not_there'"),
        ("1 / 0", "broken:x", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "broken:x", "SystemExit: 3"),
        ("x = (", "broken:x", "SyntaxError"),
        ("import no_such_package", "broken:x", "No module named 'no_such_package'"),
    ],
)
@pytest.mark.parametrize("error", [DamagedModel, BuildFailed])
def test_what_cannot_be_loaded_is_one_sentence_with_its_owner(install, text, target, what, error):
    install("oak", "a = broken:x", broken=text)
    with pytest.raises(error) as caught:
        load_object(target, "the entry point a", error)
    message = str(caught.value)
    assert (
        message.startswith(f"the entry point a names {target}, which cannot be loaded (") and what in message
    )
    assert message.endswith("install its package again, or remove it") and caught.value.__cause__ is not None


def test_a_package_that_an_extra_brings_is_named_with_the_extra(install):
    install("oak", "a = broken:x", broken="raise ModuleNotFoundError(name='torch')")
    with pytest.raises(MissingExtra, match=r"pip install 'kgkit\[train\]'"):
        load_object("broken:x", "it", DamagedModel)


def test_an_error_that_kgkit_raises_on_purpose_stays_what_it_is(install):
    text = "from kgkit.errors import UsageError\nraise UsageError('not on this machine')"
    install("oak", "a = broken:x", broken=text)
    with pytest.raises(UsageError, match=r"^not on this machine$"):
        load_object("broken:x", "it", DamagedModel)
