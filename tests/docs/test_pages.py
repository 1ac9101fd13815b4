"""The documentation says what is so: its code runs, its links lead somewhere, and it forgets no builder."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

import kgkit
from kb_builders.wordnet import WordNetBuilder
from tests.doc_pages import ROOT, Session, blocks, differences, fits, pages
from tests.mini_wordnet import mini_wordnet

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# The pages that begin from an empty folder, or from trained models, have tests of their own.
OTHERS = ("docs/adding-a-builder.md", "docs/adding-a-head.md", "docs/predict.md")
PAGES = [page for page in pages() if page not in OTHERS]
OF_WORDNET = [
    page for page in PAGES if any("wordnet" in block.content.lower() for block in blocks(ROOT / page))
]
# Pages of many commands take five seconds and more: `make test-slow` runs them.
LONG = {
    "docs/cn-dbpedia.md", "docs/how-to/agents.md", "docs/how-to/gerbil.md", "docs/how-to/large-dumps.md",
    "docs/how-to/little-memory.md", "docs/how-to/many-texts.md", "docs/editing.md",
    "docs/how-to/offline.md", "docs/how-to/openrefine.md", "docs/how-to/published-figures.md",
    "docs/sharing.md", "docs/spo.md", "docs/wikipedia.md", "docs/wikipedia2vec.md", "docs/your-own-kb.md",
}  # fmt: skip


def marked(chosen: list[str]) -> list[Any]:
    """Return pages as parameters, those of `LONG` marked as slow."""
    return [pytest.param(page, marks=[pytest.mark.slow] if page in LONG else []) for page in chosen]


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    """The folder of a build of the mini WordNet."""
    folder = tmp_path_factory.mktemp("mini")
    source = mini_wordnet(folder / "source")
    return kgkit.build_kb(WordNetBuilder(), source, home=folder / "home").path


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A folder to work in, beside the checkout's examples, with a home of its own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    session = Session(tmp_path)
    yield session
    session.end()


def lend(build: Path, home: Path) -> None:
    """Make a built WordNet the KB `wordnet` of *home*, without a copy: builds never change."""
    kb = home / "kbs/wordnet"
    (kb / "builds").mkdir(parents=True)
    (kb / "builds" / build.name).symlink_to(build)
    (kb / "current").symlink_to(Path("builds", build.name))


def has_wordnet(request: pytest.FixtureRequest) -> bool:
    """Say whether the real WordNet is here, or can be fetched."""
    try:
        request.getfixturevalue("wordnet_files")
    except pytest.skip.Exception:
        return False
    return True


@pytest.mark.parametrize("page", marked([page for page in PAGES if page not in OF_WORDNET]))
def test_a_page_shows_what_comes_out(page, session):
    if "$ curl " in (ROOT / page).read_text(encoding="utf-8") and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    assert "\n".join(differences(page, session, compare=True)) == ""


@pytest.mark.parametrize("page", marked(OF_WORDNET))
def test_the_code_of_a_page_runs_on_a_small_wordnet(page, session, mini, request):
    if has_wordnet(request):
        pytest.skip("it is run with the real WordNet, and its output compared")
    lend(mini, session.folder / "home")
    assert "\n".join(differences(page, session, compare=False)) == ""


@pytest.mark.parametrize("page", marked(OF_WORDNET))
def test_a_page_shows_what_comes_out_with_the_real_wordnet(page, session, wordnet_build):
    lend(wordnet_build, session.folder / "home")
    assert "\n".join(differences(page, session, compare=True)) == ""


def test_a_page_that_shows_something_else_is_found_out():
    assert fits("one\ntwo  \nthree\n", "one\n…\nthree\n")
    assert fits("built in 0.1 s\n", "built in … s")
    assert not fits("one\ntwo\n", "one\n")
    assert not fits("one\n", "one\ntwo\n")


def test_every_builder_is_in_the_documentation():
    told = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    builders = PROJECT["entry-points"]["kgkit.builders"]
    assert [name for name in builders if f"`{name}`" not in told and f"build-kb {name}" not in told] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path):
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        assert there.exists(), f"{path.relative_to(ROOT)} leads to {target}, which is not there"
        assert not anchor or anchor in anchors(there), f"{name} has no heading {anchor}"


def anchors(page: Path) -> list[str]:
    """Return the names that the headings of a page can be linked by."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r'(?m)^--8<-- "(.+)"$', lambda part: (ROOT / part[1]).read_text(encoding="utf-8"), text)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_a_part_of_the_figures_that_a_page_names_has_the_commands_that_stand_beside_it():
    sections = re.split(
        r"(?m)^## (?=\([a-z]+\) )", (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    )
    figures: dict[str, str] = {}
    for section in sections[1:]:
        part = section[1 : section.index(")")]
        figures[part] = figures.get(part, "") + section
    named = set()
    for path in TEXTS:
        for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
            parts = re.findall(r"RESULTS\S*, part \(?([a-z]{1,2})\)", paragraph)
            text = "".join(figures[part] for part in parts)
            for command in re.findall(r"benchmarks\.\w+", paragraph) if parts else ():
                assert command in text, f"{path.name}: {command} is not in part {parts}"
            named.update(parts)
    assert {"ab", "p", "t", "x"} <= named


def test_the_index_leads_to_every_page():
    listed = {ROOT / "docs/index.md", ROOT / "docs/api.md"}  # the latter is for a checkout, and named in it
    for index in (ROOT / "docs/index.md", ROOT / "docs/reference/index.md", ROOT / "docs/how-to/index.md"):
        names = re.findall(r"\]\(([^)#]+\.md)", index.read_text(encoding="utf-8"))
        listed |= {(index.parent / name).resolve() for name in names}
    assert {path.resolve() for path in (ROOT / "docs").rglob("*.md")} - listed == set()


def test_the_changelog_speaks_of_this_version():
    assert PROJECT["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_file_block_of_a_page_is_complete_enough_to_be_written():
    for page in pages():
        for block in blocks(ROOT / page):
            assert not block.file or block.content.strip(), f"{page}:{block.line}"


def test_a_block_of_python_is_a_file_only_where_a_file_of_python_is_named():
    """A name in backquotes, and a colon, before a block would make it a file that is never run."""
    for page in pages():
        for block in blocks(ROOT / page):
            if block.kind == "python" and block.file:
                assert block.file.endswith(".py"), f"{page}:{block.line} is {block.file}"


def test_no_file_names_a_place_on_the_disk_of_a_person():
    if shutil.which("git") is None:
        pytest.skip("no git: nobody can say which files are part of the checkout")
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a checkout of git: nobody can say which files are part of it")
    homes = "|".join(("home", "Users", "root"))
    places = re.compile(rf"(?<![\w.}}~$])/(?:{homes})/|\b[A-Za-z]:[\\/]+(?:{homes})\b".encode())
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        found += [f"{name}: {match[0].decode()}" for match in places.finditer(content)]
    assert found == []


def rooms_of_the_architecture() -> dict[str, list[str]]:
    """Return the rooms that the architecture describes, each with the modules that it lists of it."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = page.split("\n## Rooms\n")[1].split("\n## ")[0]
    first, *others = re.split(r"^### ", section, flags=re.MULTILINE)
    rooms = {room: list[str]() for room in re.findall(r"^- `([^`]+)`: ", first, re.MULTILINE)}
    for other in others:
        if heading := re.match(r"`([^`]+/)`\n", other):
            listed = re.findall(r"^- (`.+?): ", other, re.MULTILINE)
            rooms[heading[1]] = re.findall(r"`([^`]+)`", " ".join(listed))
    return rooms


def test_the_architecture_has_every_room():
    paths = [path for path in (ROOT / "kgkit").iterdir() if not path.name.startswith(("_", "py.typed"))]
    rooms = [f"{path.name}/" if path.is_dir() else path.name for path in paths]
    assert sorted(rooms_of_the_architecture()) == sorted(rooms)


def test_the_architecture_lists_modules_that_are_there_and_each_once():
    for room, modules in rooms_of_the_architecture().items():
        assert modules or room.endswith(".py"), f"{room} lists nothing"
        assert len(modules) == len(set(modules)), room
        for module in modules:
            path = ROOT / "kgkit" / room / (module if module.endswith("/") else f"{module}.py")
            assert path.exists(), f"{room} has no {module}"


def test_the_architecture_draws_the_arrows_that_are_checked():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^    (\w+(?: \| \w+)*)$", page.split("## Arrows")[1].split("\n- ")[0], re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers")
    built = [re.sub(r" \| \(\w+\)|\(\w+\)(?: \| )?", "", layer) for layer in layers]
    assert drawn == list(filter(None, built))
