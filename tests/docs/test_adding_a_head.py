"""docs/adding-a-head.md is done as it is written: from an empty folder to `kgkit train`, and back."""

import json
import sys
import tomllib

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.errors import UsageError
from kgkit.models.manifest import FORMAT, MANIFEST
from tests.cli_helpers import run
from tests.doc_pages import ROOT, Session, blocks, differences
from tests.tiny_encoder import tiny_encoder

PAGE = "docs/adding-a-head.md"
FILES = {block.file: block.content for block in blocks(ROOT / PAGE) if block.file}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which the package of the page is installed, as `pip install -e .` does it."""
    for group, entries in tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"].items():
        install(tmp_path, "kgkit_sums", group, entries)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_setting_of_ones_own_is_made_as_the_page_says_and_checked_before_anything_is_trained(
    folder, monkeypatch
):
    [patch] = [block.content for block in blocks(ROOT / PAGE) if block.kind == "diff"]
    files = dict(FILES)
    for hunk in patch.split("--- ")[1:]:
        name, _, body = hunk.partition("\n")
        old = "".join(line[1:] for line in body.splitlines(keepends=True) if line[0] in " -")
        new = "".join(line[1:] for line in body.splitlines(keepends=True) if line[0] in " +")
        assert files[name].count(old) == 1, (name, old)
        files[name] = files[name].replace(old, new)
    assert {name for name in files if files[name] != FILES[name]} == {
        "kgkit_sums/__init__.py", "kgkit_sums/method.py", "kgkit_sums/head.py",
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    for name in [name for name in sys.modules if name.partition(".")[0] == "kgkit_sums"]:
        monkeypatch.delitem(sys.modules, name)
    tiny_encoder(folder / "encoder")
    (folder / "x.tsv").write_text("text_a\tlabel\n" + "a dog\tdog\na cat eats fruit\tcat\n" * 2)
    settings = {
        "name": "x", "task": "classification", "data": "x.tsv", "encoder": "./encoder", "control": True,
        "size": 16, "steps": 1, "device": "cpu",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"^pooling is 'max'; it is 'cls' or 'mean'$"):
        kgkit.train("sums", pooling="max", **settings)
    assert not (folder / "home").exists()
    model = kgkit.train("sums", pooling="mean", **settings)
    assert json.loads((model.folder / "sums/config.json").read_text())["pooling"] == "mean"
    with kgkit.open_model("x", device="cpu") as opened:
        assert len([*opened(["a dog", "a cat eats fruit"])]) == 2
    for name in [name for name in sys.modules if name.partition(".")[0] == "kgkit_sums"]:
        monkeypatch.delitem(sys.modules, name)


def install(folder, package, group, entries):
    metadata = folder / f"{package}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 1\n"
    )
    lines = [f"{name} = {target}\n" for name, target in entries.items()]
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}")


@pytest.mark.slow
def test_the_page_can_be_followed_from_its_first_line_to_its_last(folder):
    """Slow: a tutorial with trainings of a minute; the test above trains the head of the page for a step."""
    session = Session(folder)
    try:
        assert "\n".join(differences(PAGE, session, compare=True)) == ""
        assert not [*(folder / "home/models").glob("*")] and not [*(folder / "home/runs").glob("*")]
    finally:
        session.end()


BROKEN = {
    "nothing": ("nowhere:KIND", "names nowhere:KIND, which cannot be loaded (ModuleNotFoundError"),
    "nameless": ("broken_head:MISSING", "names broken_head:MISSING, which cannot be loaded (AttributeError"),
    "other": ("broken_head:OTHER", "is broken_head:OTHER, a int; it is to be a kgkit.models.kinds.Kind"),
    "renamed": ("broken_head:KIND", "is the kind broken: both are to have one name"),
    "broken": ("broken_head:KIND", "the kind broken names broken_head:Settings, which cannot be loaded"),
    "typed": ("broken_head:TYPED", "a setting odd of the type dict[str, int] | None: an option is a str"),
}
PACKAGE = """
from dataclasses import dataclass, replace
from kgkit.methods.settings import TaskTraining
from kgkit.models.kinds import Kind
from kgkit.models.manifest import ModelManifest

OTHER = 1
KIND = Kind(
    name="broken", title="a broken model", manifest=ModelManifest, roles={"predictor": "broken_head:open"},
    use="-", command="-", settings="broken_head:Settings", begin="broken_head:begin",
)
TYPED = replace(KIND, name="typed", settings="broken_head:Typed")

@dataclass(frozen=True, kw_only=True)
class Typed(TaskTraining):
    TASKS = ("pair",)
    encoder: str = "x"
    odd: dict[str, int] | None = None
"""


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A folder in which packages are installed whose entry points are damaged."""
    (tmp_path / "broken_head.py").write_text(PACKAGE)
    install(tmp_path, "broken", "kgkit.models", {name: target for name, (target, _) in BROKEN.items()})
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_entry_point_is_one_sentence(broken, name):
    done = run("train", name, "--help")
    assert done.code in (1, 2) and BROKEN[name][1] in done.err and done.err.count("\n") == 1, done.err


def test_a_damaged_entry_point_keeps_no_other_method_from_its_work(broken, tmp_path):
    done = run("train", "--help")
    assert done.code == 0 and "kbert" in done.out and "broken" not in done.out
    done = run("train", "broke", "--help")
    assert done.code == 2 and "broke" in done.err


def test_a_model_whose_package_is_damaged_or_gone_is_listed_with_a_sentence(broken, tmp_path):
    for kind in ("nothing", "gone", "broken"):
        (tmp_path / "home/models" / kind).mkdir(parents=True)
        manifest = {"format": FORMAT, "kind": kind, "name": kind, "task": "pair"}
        (tmp_path / "home/models" / kind / MANIFEST).write_text(json.dumps(manifest))
    done = run("models", "list", "--json", "--home", tmp_path / "home")
    errors = {model["name"]: model.get("error", "") for model in json.loads(done.out)}
    assert "which cannot be loaded" in errors["nothing"] and "no installed package knows" in errors["gone"]
    done = run("predict", "--model", "broken", "--home", tmp_path / "home", PAGE)
    assert "the role predictor of the kind broken names broken_head:open, which cannot be loaded" in done.err
    assert run("models", "rm", "gone", "nothing", "--home", tmp_path / "home").code == 0
