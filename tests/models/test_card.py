"""The card of a model: what it says of each field of a manifest, and what it keeps to itself."""

import msgspec
import pytest

from kgkit.methods.knowbert_settings import KNOWBERT, KnowBertManifest
from kgkit.models.card import CARD, LICENCE_UNKNOWN, file_name, model_card, write_card
from kgkit.models.kinds import TAGGER, TaggerManifest
from kgkit.models.manifest import FORMAT, Needs

BARE = TaggerManifest(format=FORMAT, kind="tagger", name="names", types=("PER",), fingerprint="", reader={})


def card(licence="", scores=(), **fields):
    """Return the card of a tagger with these fields."""
    return model_card(TAGGER, msgspec.structs.replace(BARE, **fields), licence=licence, scores=scores)


def section(text, title):
    """Return the lines below a heading, without empty ones."""
    body = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line for line in body.splitlines() if line]


def test_a_model_that_says_nothing_of_itself_has_a_card_without_gaps():
    text = card()
    assert text.startswith("# names\n\n`names` is a tagger.\n\n## Use\n")
    assert section(text, "Scores") == ["None were measured while it was trained."]
    assert section(text, "Data") == ["Not stated."]
    assert section(text, "Licence") == [f"N{LICENCE_UNKNOWN[1:]}"]
    assert "It needs" not in text and "Its encoder" not in text and "Trained by" not in text
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_the_lines_that_use_a_model_name_it_and_run():
    use = section(card(name="news-names"), "Use")
    assert use[1:] == ["```python", "import kgkit", 'kgkit.open_model("news-names")', "```"]
    assert "news-names" in use[0] and use[0].endswith(".") and use[0][0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    compile("\n".join(use[2:-1]), "card", "exec")


def test_needs_are_listed_by_type_and_an_absent_linker_is_no_model():
    needs = Needs(kbs={"pets": "0" * 12}, vectors=("pets/plane",), models=("table",))
    sentence = f"It needs the knowledge base `pets` (build {'0' * 12}), the vectors `pets/plane`"
    assert f"{sentence}, the model `table`.\n" in card(needs=needs)
    with_linker = msgspec.structs.replace(needs, linker="prior")
    assert f"{sentence}, the model `prior`, the model `table`.\n" in card(needs=with_linker)


def test_figures_are_named_by_their_path_and_curves_are_omitted():
    results = {"dev": {"f1": 0.123456789, "loss": {"last": 2}}, "curve": [1, 2, 3], "epochs": 4, "by": "f1"}
    assert section(card(results=results), "Scores") == [
        "- dev.f1: 0.1235", "- dev.loss.last: 2", "- epochs: 4", "- by: f1",
    ]  # fmt: skip


def test_data_are_named_without_the_folders_of_a_disk():
    text = card(data={"/data/somebody/secret/train.tsv": "ab" * 32, "glue/dev.tsv": "cd" * 32})
    assert section(text, "Data") == [
        f"- `train.tsv`, SHA-256 `{'ab' * 32}`", f"- `glue/dev.tsv`, SHA-256 `{'cd' * 32}`",
    ]  # fmt: skip
    assert "somebody" not in text


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b/minilm", "minilm"),
        ("/a/b/minilm/", "minilm"),
        ("~/models/minilm", "minilm"),
        ("C:\\models\\minilm", "minilm"),
        ("c:/models/minilm", "minilm"),
        ("\\\\server\\share\\minilm", "minilm"),
        ("sentence-transformers/minilm", "sentence-transformers/minilm"),
        ("minilm", "minilm"),
        ("", ""),
    ],
)
def test_absolute_paths_of_any_system_are_cut_to_their_last_part(path, name):
    assert file_name(path) == name


@pytest.mark.parametrize(
    ("licence", "line"), [("apache 2.0", "Apache 2.0."), ("CC BY 4.0.", "CC BY 4.0."), ("x", "X.")]
)
def test_a_licence_is_a_sentence(licence, line):
    assert section(card(licence=licence), "Licence") == [line]


def test_the_version_and_day_of_the_training_end_the_card():
    text = card(kgkit_version="0.1.0", created="2026-11-24T02:03:04+00:00")
    assert text.endswith("Trained by kgkit 0.1.0, 2026-11-24.\n")


def test_a_model_of_several_tasks_names_its_own():
    manifest = KnowBertManifest(
        format=FORMAT, kind="knowbert", name="reader", kbs={}, size=16, start="", task="wic"
    )
    first = model_card(KNOWBERT, manifest).splitlines()[2]
    assert first.startswith("`reader` is ") and first.endswith(", for the task wic.")


def test_a_card_is_written_once_and_an_edited_card_stays(tmp_path):
    write_card(tmp_path, TAGGER, BARE)
    assert (tmp_path / CARD).read_text(encoding="utf-8") == card()
    (tmp_path / CARD).write_text("Mine.")
    write_card(tmp_path, TAGGER, BARE)
    assert (tmp_path / CARD).read_text() == "Mine."
