"""A tagger from files to names: it learns, goes on where it was stopped, and is used by the commands."""

import json
import signal
import sys

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.catalog import Catalog
from kgkit.errors import DamagedModel, NotThere, UnknownName, UsageError
from kgkit.evaluation.ner import read_names
from kgkit.home import Home
from kgkit.inputs.tagging import TaggingConfig
from kgkit.linking import Linker
from kgkit.models.folder import find_trained
from kgkit.models.kinds import LINKER, TAGGER
from kgkit.models.manifest import MANIFEST
from kgkit.models.opening import open_model
from kgkit.tagging.mention_tagger import TaggedMention
from kgkit.tagging.tagger import Tagger, score_tagger
from kgkit.training.curve import Curve
from kgkit.training.tagging import TaggerTraining, train_tagger
from kgkit.types import Alias, Document, Entity, Mention
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

SENTENCES = (
    "the O Big B-LOC City I-LOC grows O",
    "a O fruit O barks O and O Tree B-PER eats O",
    "Dog B-PER eats O a O fruit O in O Big B-LOC City I-LOC",
    "it O is O not O a O fruit O",
    "Cat B-PER and O Dog B-PER",
)
TEXT = "Cat eats in Big City , and a fruit barks"
READ = TaggingConfig(size=16, context=3)


def easy_encoder(folder):
    """An encoder whose vectors of words are not far from those that it begins with: it learns quickly."""
    import torch
    from transformers import BertModel

    tiny_encoder(folder, max_length=20, do_lower_case=True)
    model = BertModel.from_pretrained(folder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "position" in name or ("encoder.layer" in name and name.endswith("dense.weight")):
                parameter.mul_(0.1)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return easy_encoder(tmp_path_factory.mktemp("tiny"))


# Nothing but its capital makes a name of a word.
CAPITALS = ("a O dog O barks O", "Dog B-PER barks O", "the O Dog B-PER and O a O dog O", "a O fruit O")


def corpus(path, documents=12, sentences=SENTENCES):
    told = []
    for number in range(documents):
        told.append("-DOCSTART- -X- O O\n")
        for place in range(4):
            words = sentences[(number + place) % len(sentences)].split()
            told.append("".join(f"{a} {b}\n" for a, b in zip(words[::2], words[1::2], strict=True)))
    path.write_text("\n".join(told))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return corpus(folder / "train.txt", 20), corpus(folder / "dev.txt", 3)


def training(encoder, files, **settings):
    common = {"epochs": 6, "lr": 3e-3, "lr_new": 3e-2, "batch": 64, "bf16": False, "patience": 0}
    return TaggerTraining(
        data=files[:1], dev=files[1:], encoder=str(encoder), reader=READ, **common | settings
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder, files):
    """A home with a tagger in it: not to be changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    train_tagger(home, "names", training(encoder, files), device="cpu")
    return home


@pytest.fixture(scope="module")
def tagger(home):
    return Tagger.open("names", home=home, device="cpu")


def weights(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.safetensors")))


def told(document):
    return [(mention.text, mention.type) for mention in document.mentions]


# -- training ---------------------------------------------------------------


def test_a_trained_tagger_finds_what_it_was_taught(home, tagger, files):
    manifest = TAGGER.read(find_trained(home, "names"))
    assert (manifest.kind, manifest.types, manifest.name) == ("tagger", ("LOC", "PER"), "names")
    assert manifest.results["f1"] == manifest.results["span_f1"] == 1.0
    assert manifest.results["documents"] == 20
    assert set(manifest.data) == {str(path) for path in files}
    assert {"head/model.safetensors", "head/encoder/model.safetensors"} <= set(manifest.sizes)
    [document] = tagger([TEXT])
    assert told(document) == [("Cat", "PER"), ("Big City", "LOC")]
    assert all(0 < mention.score <= 1 for mention in document.mentions)
    assert all(TEXT[mention.start : mention.end] == mention.text for mention in document.mentions)
    assert score_tagger(tagger, read_names(files[1])).overall.f1 == 1.0
    assert not [*(home.path / "runs").iterdir()]


def test_words_have_probabilities_of_their_types(tagger, home, tmp_path):
    [words, none] = tagger.typed_words([Document("1", TEXT), Document("2", "")])
    assert none == [] and [TEXT[word.start : word.end] for word in words] == TEXT.split()
    assert [sum(word.probabilities) for word in words] == pytest.approx([1.0] * len(words), abs=1e-5)
    kinds = [("", *tagger.types)[word.likeliest()] for word in words]
    assert kinds == ["PER", "", "", "LOC", "LOC", "", "", "", "", ""]
    (tmp_path / "text.txt").write_text(TEXT)
    page, common = tmp_path / "page.html", ("--model", "names", "--home", home.path, "--device", "cpu")
    done = run("tag", tmp_path / "text.txt", "--html", page, *common)
    assert done.code == 0 and "<title>Names</title>" in page.read_text()
    page = tmp_path / "page.jsonl"
    both = run("tag", tmp_path / "text.txt", "--html", page, "--output", page, *common)
    assert both.code == 2 and "--output and --html both name" in both.err


def test_a_training_that_was_stopped_ends_with_the_same_weights(home, encoder, files, tmp_path):
    def stop(stage, done, total):
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    again = Home(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(again, "names", training(encoder, files), device="cpu", progress=stop)
    assert len([*(tmp_path / "runs").iterdir()]) == 1
    folder = train_tagger(again, "names", training(encoder, files), device="cpu")
    assert weights(folder) == weights(find_trained(home, "names"))
    other = train_tagger(again, "other", training(encoder, files, seed=1, epochs=1), device="cpu")
    assert weights(other) != weights(folder)


def test_a_training_goes_on_with_the_data_that_it_began_with_only(encoder, tmp_path):
    def stop(stage, done, total):
        if stage.startswith("training"):
            raise KeyboardInterrupt

    data = tmp_path / "data.txt"
    for documents in (5, 6):
        with pytest.raises(KeyboardInterrupt):
            few = training(encoder, (corpus(data, documents),))
            train_tagger(Home(tmp_path), "x", few, device="cpu", progress=stop)
    assert len([*(tmp_path / "runs").iterdir()]) == 2


def test_a_tagger_does_not_replace_its_teacher(home, encoder, files, tmp_path):
    text, before = tmp_path / "text.txt", find_trained(home, "names")
    text.write_text("Dora lives in Lima .\n" * 20)
    for teacher in ("names", str(before), str(home.models / "names")):
        learns = TaggerTraining(data=(text,), teacher=teacher, encoder=str(encoder), epochs=1)
        stages: list[str] = []

        def note(stage, *_, stages=stages):
            stages.append(stage)

        with pytest.raises(UsageError, match=r"^the model names would replace the model \S+, which it is "):
            train_tagger(home, "names", learns, device="cpu", progress=note)
        assert not stages and find_trained(home, "names") == before


def test_epochs_without_a_gain_end_the_training(encoder, files, tmp_path):
    idle = training(encoder, files, lr=1e-9, lr_new=1e-9, patience=2)
    results = TAGGER.read(train_tagger(Home(tmp_path), "x", idle, device="cpu")).results
    assert len(results["epochs"]) == 3


def test_a_tagger_that_finds_nothing_says_so(encoder, files, tmp_path, caplog):
    dev = corpus(tmp_path / "dev.txt", 2, ("the O dog B-ORG barks O",))  # a type that is not taught
    train_tagger(Home(tmp_path), "poor", training(encoder, (files[0], dev), epochs=1), device="cpu")
    assert "poor finds none of the names" in caplog.text


@pytest.mark.slow
def test_a_tagger_is_told_of_capitals_that_the_encoder_does_not_see(encoder, tmp_path):
    files = [corpus(tmp_path / name, 20, CAPITALS) for name in ("train.txt", "dev.txt")]
    f1 = []
    for shapes in None, False:
        folder = train_tagger(Home(tmp_path), "x", training(encoder, files, shapes=shapes), device="cpu")
        f1.append(TAGGER.read(folder).results["f1"])
    assert f1[0] == 1.0 > f1[1]


def test_without_other_documents_one_in_ten_chooses_the_epoch(encoder, files, tmp_path):
    few = training(encoder, files[:1], epochs=1)
    results = TAGGER.read(train_tagger(Home(tmp_path), "held", few, device="cpu")).results
    assert (results["documents"], results["dev_documents"]) == (18, 2)
    data = corpus(tmp_path / "five.txt", 5)
    results = TAGGER.read(
        train_tagger(Home(tmp_path), "five", training(encoder, (data,), epochs=1), device="cpu")
    ).results
    assert (results["documents"], results["dev_documents"], results["epochs"]) == (5, 0, [])


def test_what_cannot_be_trained_on_is_said_so(encoder, files, tmp_path):
    (tmp_path / "none.txt").write_text("dog O\n")
    home = Home(tmp_path)
    with pytest.raises(UsageError, match="no name in the data"):
        train_tagger(home, "x", training(encoder, (tmp_path / "none.txt",)), device="cpu")
    with pytest.raises(UsageError, match="'prior' cannot name a model"):
        train_tagger(home, "prior", training(encoder, files), device="cpu")
    with pytest.raises(UsageError, match="name one or more files of data"):
        training(encoder, ())
    for wrong in ({"lr": 0.0}, {"epochs": 0}, {"batch": 0}, {"patience": -1}, {"seed": -1}, {"decay": -1.0}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*; it is "):
            training(encoder, files, **wrong)
    assert not (tmp_path / "models").exists()


# -- use --------------------------------------------------------------------


def test_what_stands_beside_a_document_changes_nothing(tagger):
    texts = [TEXT, "Dog", "", "the Big City " * 30, "a fruit", "Cat and Dog eats fruit"]
    together = [told(document) for document in tagger(texts)]
    assert together == [told(document) for text in texts for document in tagger([text])]
    assert together == [told(document) for document in tagger(texts[::-1])][::-1]
    assert len(together[3]) == 30
    assert together[2] == []


def test_offsets_are_those_of_the_text_as_it_was_given(tagger):
    text = "\ufeff😀 Dog\r\n\r\n“Tre\u0301e”\tCat\u00a0eats \U0001f1e9\U0001f1ea in Big\r\nCity"
    [document] = tagger([text])
    assert document.text == text
    found = {mention.text for mention in document.mentions}
    assert {"Dog", "Cat", "Big\r\nCity"} <= found
    assert all(text[mention.start : mention.end] == mention.text for mention in document.mentions)


def test_a_long_text_without_sentences_is_read_to_its_end(tagger, monkeypatch):
    monkeypatch.setattr("kgkit.tagging.tagger._MAX_WORDS", 16)
    text = "a fruit barks and Dog eats in Big City , " * 40
    [document] = tagger([text])
    assert told(document) == [("Dog", "PER"), ("Big City", "LOC")] * 40


def test_names_are_widened_to_the_tokens_of_a_document(tagger):
    text = "Cat-fruit eats"
    tokens = [(0, 9), (10, 14)]
    [plain, wide] = tagger([text, Document("d", text, None, tokens)])
    assert told(plain)[0] == ("Cat", "PER")
    assert told(wide) == [("Cat-fruit", "PER")]
    for text in "Cat-Dog eats", "Dog-Cat eats":  # the likelier of two in one token, whichever is the first
        [plain, two] = tagger([text, Document("d", text, None, [(0, 7), (8, 12)])])
        likelier = max(mention.score for mention in plain.mentions)
        assert [(mention.text, mention.score) for mention in two.mentions] == [(text[:7], likelier)]


def test_mentions_that_are_given_stay(tagger):
    given = Document("d", TEXT, mentions=[Mention(0, 3, "Cat")])
    [kept, found] = tagger([given, TEXT])
    assert kept is given
    assert len(found.mentions) == 2
    with pytest.raises(TypeError, match="not one text"):
        tagger(TEXT)


def test_taggers_are_no_linkers_and_linkers_no_taggers(home, tmp_path):
    with pytest.raises(UsageError, match=r"is a tagger, and links nothing: .*`--mentions names`"):
        open_model("names", "linker", home=home)
    with pytest.raises(UsageError, match=r"is a tagger, not a linker: .*`--mentions names`"):
        LINKER.read(find_trained(home, "names"))
    told = json.loads((find_trained(home, "names") / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(told | {"kind": "linker", "type": "ridge", "name": "places"}))
    with pytest.raises(UsageError, match=r"is a linker \(type ridge\), and finds no mentions"):
        Tagger.open(str(tmp_path))
    with pytest.raises(UnknownName, match="no tagger named 'nmaes'; there are: names"):
        Tagger.open("nmaes", home=home)
    with pytest.raises(NotThere, match="no model in"):
        Tagger.open(str(tmp_path / "nowhere"), home=home)
    (tmp_path / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(DamagedModel, match="is not the file of"):
        Tagger.open(str(tmp_path))
    (tmp_path / MANIFEST).write_text(json.dumps(told | {"format": 1, "command": ""}))
    with pytest.raises(DamagedModel, match=r"it has format 1.* with `kgkit train tagger --name names …`"):
        Tagger.open(str(tmp_path))


# -- mentions for a linker --------------------------------------------------


@pytest.fixture
def kb(home):
    records = [
        Entity("cat", "Cat"), Entity("tom", "Tom"), Entity("town", "Big City"), Entity("city", "City"),
        Entity("fruit", "fruit"),
        Alias("Cat", "cat", 3), Alias("Cat", "tom", 1), Alias("Big City", "town", 1),
        Alias("fruit", "fruit", 1),
        Alias("City", "city", 1),
    ]  # fmt: skip
    with build(home.path, records, name="things") as kb:
        yield kb


def test_a_linker_links_what_the_tagger_finds(kb):
    found = Linker.open(kb)
    linker = Linker.open(kb, mentions="names", device="cpu")
    [plain], [linked] = found([TEXT]), linker([TEXT])
    assert [link.entity for link in plain.links] == ["cat", "town", "fruit"]
    assert [link.entity for link in linked.links] == ["cat", "town"]
    for before, after, mention in zip(
        plain.links, linked.links, linker.tagger([TEXT]).__next__().mentions, strict=False
    ):
        assert isinstance(mention, TaggedMention)
        assert after.score == pytest.approx(before.score * mention.score, abs=2e-6)
        assert after.candidates[0].score == after.score
    given = Document("d", TEXT, mentions=[Mention(29, 34, "fruit")])
    assert [link.entity for link in next(linker([given])).links] == ["fruit"]


def test_a_score_below_the_threshold_is_nil(kb):
    def links(threshold):
        linker = Linker.open(kb, mentions="names", device="cpu", threshold=threshold, nil=True)
        return next(linker([TEXT])).links

    scores = [link.score for link in links(0)]
    assert 0 < min(scores) < max(scores) < 1
    between = sum(scores) / 2
    assert [link.nil for link in links(0)] == [False, False]
    assert [link.nil for link in links(between)] == [score < between for score in scores]
    assert [link.nil for link in links(1)] == [True, True]


def test_a_tagger_that_is_not_there_is_said_so(kb):
    with pytest.raises(UnknownName, match="no tagger named 'naems'; there are: names"):
        Linker.open(kb, mentions="naems")


# -- commands ---------------------------------------------------------------


def test_the_commands_train_score_and_tag(encoder, files, tmp_path):
    data, dev = files
    home = tmp_path / "home"
    done = run(
        "train", "tagger", "--data", data, "--dev", dev, "--encoder", encoder, "--name", "small",
        "--epochs", 1, "--lr", 1e-2, "--seed", 3, "--device", "cpu", "--scope", "sentence", "--home", home,
        "--size", 16,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert TAGGER.read(find_trained(Home(home), "small")).config["bf16"] == "auto"
    assert "small: a tagger of LOC, PER" in done.out
    assert TAGGER.read(find_trained(Home(home), "small")).reader == {
        "size": 16,
        "context": 2,
        "scope": "sentence",
    }
    train_tagger(Home(home), "small", training(encoder, files), device="cpu")

    scored = run(
        "evaluate",
        "ner",
        "--data",
        dev,
        "--model",
        "small",
        "--home",
        home,
        "--json",
        "--predictions",
        tmp_path / "p",
    )
    assert scored.code == 0, scored.err
    [one] = json.loads(scored.out)["sets"]
    assert (one["name"], one["overall"]["f1"], set(one["by_type"])) == ("dev", 1.0, {"LOC", "PER"})
    assert all(
        line.split()[1] == line.split()[2] for line in (tmp_path / "p").read_text().splitlines() if line
    )
    other = tmp_path / "other.txt"
    other.write_text(dev.read_text().replace("LOC", "PER"))
    table = run("evaluate", "ner", "--data", dev, "--data", other, "--model", "small", "--home", home)
    assert "dev\tall\t14\t14\t14\t100.00\t100.00\t100.00" in table.out
    assert "together\tspans\t" in table.out
    with Catalog.open(Home(home)) as catalog:
        kept = {(score.dataset, score.metric): score.value for one in catalog.runs() for score in one.scores}
    assert kept[("dev", "f1")] == kept[("dev", "span f1")] == kept[("other", "span f1")] == 1.0
    assert kept[("other", "f1")] < 1
    assert 0 <= kept[("held out", "f1")] < 1

    tagged = run("tag", "--model", "small", "--home", home, given=TEXT.encode())
    assert tagged.code == 0, tagged.err
    line = msgspec.json.decode(tagged.out)
    assert (line["id"], line["text"], line["model"]) == ("-", TEXT, "small")
    assert [(one["start"], one["end"], one["type"]) for one in line["mentions"]] == [
        (0, 3, "PER"),
        (12, 20, "LOC"),
    ]
    sure = run("tag", "--model", "small", "--home", home, "--threshold", 1, given=TEXT.encode())
    assert json.loads(sure.out)["mentions"] == []
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    assert run("tag", text, "--model", "small", "--home", home, "-o", tmp_path / "o.jsonl").out == ""
    assert json.loads((tmp_path / "o.jsonl").read_text())["mentions"] == line["mentions"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["tag", "--model", "none"], 3, "no tagger named 'none'; there are: names-minilm"),
        (["tag", "x.txt", "--model", "none"], 3, "no file x.txt"),
        (["evaluate", "ner", "--data", "x.txt", "--model", "none"], 3, "no file x.txt"),
        (["evaluate", "ner", "--data", __file__, "--model", "none"], 3, "no tagger named 'none'"),
        (["train", "tagger", "--data", "x.txt", "--name", "y"], 3, "no file x.txt"),
        (["train", "tagger", "--data", ".", "--name", "y"], 2, "is a folder"),
        (["tag", "-", "-", "--model", "none"], 2, "name - once"),
    ],
)
def test_a_wrong_command_line_is_one_line(args, code, said, tmp_path):
    done = run(*args, "--home", tmp_path)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ")
    assert said in done.err


def test_links_of_a_tagger_s_mentions_are_scored_and_written(home, kb, tmp_path):
    mentions = [{"start": 0, "end": 1, "entity": "cat"}, {"start": 3, "end": 5, "entity": "town"}]
    data = tmp_path / "el.jsonl"
    data.write_text(json.dumps({"doc_id": 1, "tokens": TEXT.split(), "mentions": mentions}))
    common = ("--kb", "things", "--home", home.path, "--mentions", "names", "--device", "cpu")
    done = run("evaluate", "el", "--data", data, "--json", *common)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["mentions"], told["together"]["micro"]["f1"], told["together"]["links"]) == ("names", 1.0, 2)
    linked = run("link", *common, given=TEXT.encode())
    assert [link["entity"] for link in json.loads(linked.out)["links"]] == ["cat", "town"]
    tagged = run("tag", "--model", "names", "--home", home.path, given=TEXT.encode()).out
    piped = run(
        "link", *common[: common.index("--mentions")], "--input-format", "jsonl", given=tagged.encode()
    )
    assert piped.out == linked.out
    again = run(
        "tag", "--model", "names", "--home", home.path, "--input-format", "jsonl", given=tagged.encode()
    )
    assert again.code == 2 and "document '-' has mentions already" in again.err
    assert (
        "no tagger named 'fuond'"
        in run("evaluate", "el", "--data", data, *common[:-4], "--mentions", "fuond").err
    )


def test_sigterm_keeps_what_a_training_has_done_and_names_the_command(encoder, files, tmp_path, monkeypatch):
    data, dev = files
    steps, add = [], Curve.add

    def terminate(curve, *values, **named):
        """Send the signal while the second line of the curve is written."""
        add(curve, *values, **named)
        steps.append(1)
        if len(steps) == 2:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Curve, "add", terminate)
    monkeypatch.setattr(sys, "argv", ["kgkit", "train", "tagger", "--name", "small"])
    command = [
        "train", "tagger", "--data", data, "--dev", dev, "--encoder", encoder, "--name", "small",
        "--epochs", 2, "--device", "cpu", "--home", tmp_path,
    ]  # fmt: skip
    stopped = run(*command)
    assert stopped.code == 143 and stopped.err.endswith("terminated\n")
    assert "with a checkpoint" in stopped.err
    assert "give the same command again: kgkit train tagger --name small" in stopped.err
    assert "resume" not in stopped.err
    assert list((tmp_path / "runs").glob("*/checkpoint.pt"))
    monkeypatch.setattr(Curve, "add", add)
    assert run(*command).code == 0
    assert not list((tmp_path / "runs").iterdir())
