"""A KALM from plain text to perplexities and names: it learns, resumes, and is used by the commands."""

import json
import shutil
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from kgkit.building import Alias, Entity  # noqa: E402
from kgkit.errors import DamagedModel, UsageError  # noqa: E402
from kgkit.heads import KALM, KALMConfig  # noqa: E402
from kgkit.home import Home  # noqa: E402
from kgkit.inputs.kalm import Stretches, TypedVocabulary  # noqa: E402
from kgkit.kb import open_kb  # noqa: E402
from kgkit.linking import Linker  # noqa: E402
from kgkit.methods.kalm import KALMTagger, TrainedKALM, score_words  # noqa: E402
from kgkit.methods.kalm_settings import KALM as KIND  # noqa: E402
from kgkit.methods.kalm_settings import KALMTraining  # noqa: E402
from kgkit.models.folder import find_trained, has_model  # noqa: E402
from kgkit.models.kinds import TAGGER  # noqa: E402
from kgkit.models.opening import open_model  # noqa: E402
from kgkit.tagging.mention_tagger import MentionTagger  # noqa: E402
from kgkit.training import kalm as training_kalm  # noqa: E402
from kgkit.training.kalm import SIZES, CarriedState, loss_with_states, read_data  # noqa: E402
from kgkit.training.methods import train_model  # noqa: E402
from kgkit.training.tagging import read_untagged, teach  # noqa: E402
from kgkit.types import Document  # noqa: E402
from tests.cli_helpers import run  # noqa: E402
from tests.small_kb import build, type_records  # noqa: E402
from tests.tiny_encoder import tiny_encoder  # noqa: E402

PLACES = "Oslo Bergen Rome Lima Paris".split()
PEOPLE = "Anna Bert Carl Dora".split()
TYPES = type_records(
    LOC=dict.fromkeys(PLACES, 5.0) | {"Paris": 4.0}, PER=dict.fromkeys(PEOPLE, 5.0) | {"Paris": 1.0}
)
SENTENCES = [
    f"{person} lives in {place} ." if number % 2 else f"from {place} comes old {person} ."
    for number in range(8)
    for person in PEOPLE
    for place in PLACES
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    build(folder, TYPES, name="types").close()
    rng = np.random.default_rng(0)
    train, dev = ([SENTENCES[row] for row in rng.permutation(len(SENTENCES))[part]]
                  for part in (slice(130), slice(130, None)))  # fmt: skip
    (folder / "train.txt").write_text("\n".join(train) + "\n")
    (folder / "dev.txt").write_text("\n".join(dev) + "\n")
    return Home(folder)


@pytest.fixture(scope="module", autouse=True)
def small_kalm():
    with pytest.MonkeyPatch.context() as patch:
        sizes = {**SIZES, "embedding": 12, "hidden": 16, "type_width": 6}
        for name, value in {"SIZES": sizes, "ROWS": 4, "LENGTH": 12, "RATE": 2e-2}.items():
            patch.setattr(training_kalm, name, value)
        yield


def settings(home, **others):
    files = {"data": (home.path / "train.txt",), "dev": (home.path / "dev.txt",)}
    return KALMTraining(**{**files, "epochs": 2, **others})


def train_kalm(home, name, training, **others):
    return train_model(home, name, KIND, training, ["types"], **others)


def data_of(home, training):
    with open_kb("types", home.path) as kb:
        return read_data(home, training, kb)


@pytest.fixture(scope="module")
def trained(home):
    train_kalm(home, "both", settings(home, bidirectional=True, epochs=4), device="cpu")
    train_kalm(home, "forward", settings(home), device="cpu")
    train_kalm(home, "plain", settings(home, control=True), device="cpu")
    return home


def weights(home, name):
    return load_file(find_trained(home, name) / "kalm" / "model.safetensors")


# -- training -----------------------------------------------------------------


def test_it_learns_and_says_how_well(trained):
    manifest = KIND.read(find_trained(trained, "both"))
    assert (manifest.types, manifest.bidirectional, manifest.style) == (("LOC", "PER"), True, "cased")
    assert manifest.kb.startswith("types@") and manifest.task == "lm"
    assert manifest.results["vocabulary"] == 16 + 1 and manifest.results["unknown"] == 0
    assert manifest.results["perplexity"] < 8
    assert {*manifest.results["epochs"][0]} == {"epoch", "log_likelihood", "perplexity"}
    assert KIND.roles_in(manifest) == ("language_model", "tagger")
    for name in ("forward", "plain"):
        assert KIND.roles_in(KIND.read(find_trained(trained, name))) == ("language_model",)


def test_a_control_has_the_same_words_and_no_knowledge_base(trained):
    manifest = KIND.read(find_trained(trained, "plain"))
    assert (manifest.types, manifest.kb) == ((), "")
    words = (find_trained(trained, "plain") / "words.txt").read_text()
    assert words == (find_trained(trained, "forward") / "words.txt").read_text()


def check_resumption(home, training, *, share):
    """Check that a training which was stopped ends as an undisturbed one."""

    def stop(stage, done, total):
        if stage.startswith("training") and done == int(share * total) + 1:
            raise KeyboardInterrupt

    train_kalm(home, "undisturbed", training, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train_kalm(home, "halved", training, device="cpu", progress=stop)
    train_kalm(home, "halved", training, device="cpu")
    undisturbed, resumed = weights(home, "undisturbed"), weights(home, "halved")
    assert undisturbed.keys() == resumed.keys()
    for name, weight in undisturbed.items():
        assert torch.equal(weight, resumed[name]), name
    results = [KIND.read(find_trained(home, name)).results for name in ("undisturbed", "halved")]
    assert results[0]["epochs"] == results[1]["epochs"]


def test_states_go_from_batch_to_batch_and_begin_anew_with_each_epoch():
    torch.manual_seed(0)
    kalm = KALM(KALMConfig(words=9, embedding=6, hidden=5, layers=2)).eval()
    loss = loss_with_states(kalm, carried := CarriedState())
    stretches = Stretches(np.arange(40) % 9, rows=2, length=7)

    def losses():
        return [float(loss(kalm, batch)[0].detach()) for batch in stretches.epoch(0, range(len(stretches)))]

    assert losses() == (again := losses())
    carried.state = None
    [second] = stretches.epoch(0, [1])
    assert float(loss(kalm, second)[0].detach()) != again[1]


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
def test_a_training_that_was_stopped_ends_as_an_undisturbed_one(both, home):
    check_resumption(home, settings(home, bidirectional=both), share=0.5)


@pytest.mark.slow
def test_a_seed_decides_all_weights(home):
    for name, seed in (("zero", 0), ("again", 0), ("seven", 7)):
        train_kalm(home, name, settings(home, bidirectional=True, epochs=1, seed=seed), device="cpu")
    zero, again, seven = (weights(home, name) for name in ("zero", "again", "seven"))
    assert all(torch.equal(weight, again[name]) for name, weight in zero.items())
    assert not torch.equal(zero["embedding"], seven["embedding"])


@contextmanager
def opened_files(below):
    """Give the list of the files in a folder that are opened."""
    names = []
    is_watching = True

    def watch(event, args):
        if is_watching and event == "open" and isinstance(args[0], str | bytes):
            path = Path(args[0].decode() if isinstance(args[0], bytes) else args[0])
            if path.parent == below:
                names.append(path.name)

    sys.addaudithook(watch)
    yield names
    is_watching = False


def test_plain_text_alone_is_read_and_no_file_of_labels_beside_it(home, tmp_path):
    for name in ("train", "dev"):
        text = (home.path / f"{name}.txt").read_text()
        (tmp_path / f"{name}.txt").write_text(text)
        labels = "".join(f"{word} O\n" for word in text.split())
        for suffix in (".conll", ".labels", ".bio", ".txt.labels"):
            (tmp_path / f"{name}{suffix}").write_text(labels)
    training = settings(home, data=(tmp_path / "train.txt",), dev=(tmp_path / "dev.txt",), epochs=1)
    with opened_files(tmp_path) as names:
        train_kalm(home, "watched", replace(training, bidirectional=True), device="cpu")
    assert {*names} == {"train.txt", "dev.txt"}


def test_a_file_with_labels_is_refused(home, tmp_path):
    (tmp_path / "eng.train").write_text("EU I-ORG\nrejects O\n. O\n")
    with pytest.raises(UsageError, match="has a label at the end of each line"):
        train_kalm(home, "labels", settings(home, data=(tmp_path / "eng.train",)), device="cpu")


@pytest.mark.parametrize(
    ("changed", "words", "warning"),
    [
        (
            {},
            ["oslo", "anna"],
            "with other capitals: these are taken for words without a type. --style recipe reads",
        ),
        ({"style": "recipe"}, ["Oslo", "Anna"], ""),
        ({}, ["zebra", "Emil"], "no word to learn from has a type in types"),
        ({"style": "recipe"}, ["oslo", "anna"], ""),
        ({"control": True}, ["zebra", "Emil"], ""),
    ],
)
def test_types_that_the_words_of_the_texts_lack_are_warned_of(
    changed, words, warning, home, tmp_path, caplog
):
    place, path = Home(tmp_path), tmp_path / "text.txt"
    build(tmp_path, type_records(**dict(zip(("LOC", "PER"), ({word: 1.0} for word in words), strict=True))),
          name="types").close()  # fmt: skip
    path.write_text("Anna lives in Oslo\n" * 20)
    data_of(place, settings(home, data=(path,), dev=(), **changed))
    assert warning in caplog.text and bool(caplog.text) == bool(warning)


def test_other_senses_come_from_what_the_types_were_made_of_or_from_what_is_named(home, tmp_path, caplog):
    place = Home(tmp_path)
    types = [
        Entity("PER", "PER", kind="type", attributes={"source": "senses"}),
        *(Alias(name, "PER", 3.0) for name in ("May", "Anna")),
    ]
    build(tmp_path, types, name="types").close()

    def share(**changed):
        vocabulary = data_of(place, settings(home, **changed)).vocabulary
        [number] = vocabulary.ids(["May"])
        return vocabulary.prior[number, 0]

    assert share() == 0.0 and "types was made of senses, which is gone" in caplog.text
    caplog.clear()
    build(tmp_path, [Entity("may", "may"), Alias("may", "may", 1.0)], name="senses").close()
    assert share() == pytest.approx(0.25) and not caplog.text


def test_without_dev_the_last_tenth_is_held_out(home):
    data = data_of(home, settings(home, dev=()))
    assert len(data.dev) == (len(data.dev) + len(data.learn)) // 10


def test_the_vocabulary_may_have_words_of_other_files(home, tmp_path):
    (tmp_path / "other.txt").write_text("a zebra\n")
    without, with_words = settings(home), settings(home, words=(tmp_path / "other.txt",))
    assert {*data_of(home, with_words).vocabulary.words} - {*data_of(home, without).vocabulary.words} == {
        "a", "zebra",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": ()}, "no training data"),
        ({"open_names": True, "style": "recipe"}, "open names are words with a capital"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changed, message, home):
    with pytest.raises(UsageError, match=message):
        settings(home, **changed)


def test_a_text_of_no_length_is_refused(home, tmp_path):
    (tmp_path / "short.txt").write_text("a b\n")
    with pytest.raises(UsageError, match="there are 0 words to choose the epoch by, the ends"):
        train_kalm(home, "short", settings(home, data=(tmp_path / "short.txt",), dev=()), device="cpu")


# -- perplexity ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["forward", "plain", "both"])
def test_its_perplexity_is_that_of_words_one_by_one(name, trained):
    model = open_model(name, "language_model", home=trained, device="cpu")
    assert isinstance(model, TrainedKALM)
    sequence = model.vocabulary.read([trained.path / "dev.txt"])[:40]
    words = torch.from_numpy(sequence)[None]
    whole = score_words(model.kalm, sequence, [0], length=100, rows=1)
    with torch.no_grad():
        read = words if name == "both" else words[:, :-1]
        targets = words[:, 1:-1] if name == "both" else words[:, 1:]
        nats = -model.kalm.log_likelihood(model.kalm(read), targets).mean().item()
    assert whole.nats == pytest.approx(nats, rel=1e-5)
    assert whole.perplexity == pytest.approx(np.exp(nats), rel=1e-5)
    assert whole.words == targets.numel()
    if name != "both":  # states are carried
        assert score_words(model.kalm, sequence, [0], length=7, rows=1).nats == pytest.approx(nats, rel=1e-5)


def test_words_that_are_unknown_are_counted(trained, tmp_path):
    (tmp_path / "new.txt").write_text("Anna lives in Atlantis .\n")
    score = open_model("forward", home=trained, device="cpu").perplexity([tmp_path / "new.txt"])
    assert (score.words, score.unknown) == (6, 1)


def test_evaluate_ppl_says_what_the_perplexity_is_of(trained):
    common = ("--data", trained.path / "dev.txt", "--home", trained.path, "--device", "cpu")
    done = run("evaluate", "ppl", "--model", "forward", *common)
    assert done.code == 0, done.err
    assert "forward: perplexity of words, predicted from those before them" in done.out
    assert "not comparable with that of word pieces" in done.out
    both = json.loads(run("evaluate", "ppl", "--model", "both", "--json", *common).out)
    assert (both["unit"], both["measure"]) == ("word", "pseudo-perplexity")
    [score] = both["sets"]
    assert score["perplexity"] == pytest.approx(np.exp(score["nats"]))
    text = (trained.path / "dev.txt").read_text()
    assert (score["words"], score["unknown"]) == (len(text.split()) + 30 - 1, 0)  # each but the last <eos>
    refused = run("evaluate", "ppl", "--model", "both", "--seed", 1, *common)
    assert refused.code == 2 and "leave out --seed" in refused.err


def test_evaluate_ppl_names_the_language_models_where_there_is_none_of_a_name(trained):
    refused = run(
        "evaluate", "ppl", "--model", "nope", "--data", trained.path / "dev.txt", "--home", trained.path
    )
    assert refused.code == 3 and "no language model named 'nope'; there are:" in refused.err
    assert {"both", "forward", "plain"} <= {*refused.err.strip().rpartition("there are: ")[2].split(", ")}


# -- names --------------------------------------------------------------------


def test_it_finds_names_by_their_types(trained):
    tagger = MentionTagger.open("both", home=trained, device="cpu")
    assert isinstance(tagger, KALMTagger) and tagger.types == ("LOC", "PER")
    [document] = tagger(["Dora lives in Lima."])
    assert [(name.text, name.type) for name in document.mentions] == [("Dora", "PER"), ("Lima", "LOC")]
    assert all(0 < name.score <= 1 for name in document.mentions)


def tagger_of(home, **settings):
    return KALMTagger(open_model("both", "language_model", home=home, device="cpu"), **settings)


def test_a_larger_share_of_the_prior_gives_the_types_of_the_knowledge_base(trained):
    text = "Oslo Anna . in Bergen"
    only = tagger_of(trained, type_prior=1.0)
    [document] = only([text])
    assert [(name.text, name.type, name.score) for name in document.mentions] == [
        ("Oslo", "LOC", 1.0), ("Anna", "PER", 1.0), ("Bergen", "LOC", 1.0),
    ]  # fmt: skip
    [words] = tagger_of(trained, type_prior=0.0).typed_words([Document("1", text)])
    assert [sum(word.probabilities) for word in words] == pytest.approx([1.0] * 5, abs=1e-5)
    assert [text[word.start : word.end] for word in words] == text.split()


def test_a_word_has_a_type_that_its_vocabularies_have(trained):
    text = "Dora lives in Lima ."
    [words] = tagger_of(trained, type_prior=0.0).typed_words([Document("1", text)])
    model = open_model("both", "language_model", home=trained, device="cpu")
    for number, word in zip(model.vocabulary.ids(text.split()), words, strict=True):
        members = model.kalm.members.T[number]
        assert not any(
            share for share, is_member in zip(word.probabilities, members, strict=True) if not is_member
        )


def test_a_knowledge_base_of_types_is_needed(home):
    with pytest.raises(UsageError, match="--kb"):
        train_model(home, "none", KIND, settings(home), device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["both", "open"])
def test_other_texts_their_order_and_padding_change_no_probability(name, trained):
    if name == "open" and not has_model(trained, "open"):
        train_open(trained)
    tagger = MentionTagger.open(name, home=trained, device="cpu")
    texts = ["Dora lives in Lima .", "x", "", "from Oslo comes old Anna . " * 40, "Bert\nCarl"]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    together = tagger.typed_words(documents)
    alone = [words for document in documents for words in tagger.typed_words([document])]
    for others in (alone, tagger.typed_words(documents[::-1])[::-1]):
        for first, second in zip(together, others, strict=True):
            assert [word[:2] for word in first] == [word[:2] for word in second]
            for word, other in zip(first, second, strict=True):
                assert word.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_words_of_one_type_that_follow_each_other_are_one_name_within_a_sentence(trained):
    only = tagger_of(trained, type_prior=1.0)
    [document] = only(["old Anna Bert lives\nCarl in Oslo"])
    assert [name.text for name in document.mentions] == ["Anna Bert", "Carl", "Oslo"]


def test_commands_take_it_as_a_tagger(trained, tmp_path):
    common = ("--home", trained.path, "--device", "cpu")
    (tmp_path / "text.txt").write_text("Dora lives in Lima .")
    page = tmp_path / "page.html"
    done = run("tag", tmp_path / "text.txt", "--model", "both", "--html", page, *common)
    assert done.code == 0, done.err
    assert [name["type"] for name in json.loads(done.out)["mentions"]] == ["PER", "LOC"]
    drawn = page.read_text()
    assert "Dora" in drawn and "<td>PER</td>" in drawn and "no name" in drawn
    gold = tmp_path / "gold.conll"
    gold.write_text("Dora B-PER\nlives O\nin O\nLima B-LOC\n. O\n\nAnna B-PER\nBert B-PER\n")
    scored = run("evaluate", "ner", "--model", "both", "--data", gold, "--json", *common)
    together = json.loads(scored.out)["together"]
    assert together["overall"]["gold"] == 4 and together["tokens"]["f1"] > 0
    refused = run("tag", tmp_path / "text.txt", "--model", "forward", *common)
    assert refused.code == 2 and "forward is a KALM, and finds no mentions in plain text" in refused.err


def test_a_control_is_no_tagger_though_it_reads_both_sides(trained):
    train_kalm(
        trained, "control", settings(trained, control=True, bidirectional=True, epochs=1), device="cpu"
    )
    with pytest.raises(UsageError, match="one of both directions with types finds mentions, as a tagger"):
        MentionTagger.open("control", home=trained, device="cpu")


def test_data_with_other_types_are_warned_of(trained, tmp_path):
    for kind in ("LOC", "city"):
        (tmp_path / "data.conll").write_text(f"from O\nOslo I-{kind}\n")
        done = run("evaluate", "ner", "--data", tmp_path / "data.conll", "--model", "both",
                   "--home", trained.path, "--device", "cpu")  # fmt: skip
        warning = "both finds names of LOC, PER, and the data have city: only the scores of spans compare"
        assert done.code == 0 and (warning in done.err) == (kind == "city")


def test_it_finds_mentions_for_a_linker(trained):
    with Linker.open("types", home=trained.path, mentions="both", device="cpu").kb as kb:
        linker = Linker.open(kb, home=trained.path, mentions="both", device="cpu")
        [linked] = linker(["Dora lives in Lima ."])
        assert [link.text for link in linked.links] == ["Dora", "Lima"]


def test_it_teaches_an_encoder_its_types(trained, tmp_path):
    tiny_encoder(tmp_path / "encoder")
    text = trained.path / "train.txt"
    done = run(
        "train", "tagger", "--teacher", "both", "--data", text, "--dev", trained.path / "dev.txt",
        "--encoder", tmp_path / "encoder", "--name", "taught", "--epochs", 1, "--home", trained.path,
        "--device", "cpu",
    )  # fmt: skip
    assert done.code == 0, done.err
    manifest = TAGGER.read(find_trained(trained, "taught"))
    assert manifest.types == ("LOC", "PER") and manifest.config["teacher"] == "both"

    teacher = MentionTagger.open("both", home=trained, device="cpu")
    named = [*teach(teacher, read_untagged([text], teacher))]
    assert manifest.results["names"] == sum(len(document.names) for document in named) > 100
    words = {document.document.text[name.start : name.end] for document in named for name in document.names}
    assert words <= {*PEOPLE, *PLACES}
    refused = run(
        "train", "tagger", "--teacher", "forward", "--data", text, "--encoder", tmp_path / "encoder",
        "--name", "other", "--home", trained.path,
    )  # fmt: skip
    assert refused.code == 2 and "forward is a KALM, and finds no mentions" in refused.err


def test_a_teacher_that_finds_nothing_is_named(trained, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("lives in .\n\nold lives .\n")
    done = run(
        "train", "tagger", "--teacher", "both", "--data", text, "--name", "none", "--home", trained.path,
        "--encoder", tiny_encoder(tmp_path / "encoder"),
    )  # fmt: skip
    assert done.code == 2 and "the teacher both finds no name in the data" in done.err
    assert "`kgkit tag --model both FILE`" in done.err and not has_model(trained, "none")


# -- open names ---------------------------------------------------------------


def train_open(home):
    path = home.path / "open.txt"
    path.write_text((home.path / "train.txt").read_text().replace("in Rome", "in Cusco"))
    training = settings(home, data=(path,), bidirectional=True, open_names=True, epochs=4)
    train_kalm(home, "open", training, device="cpu")


@pytest.mark.slow
def test_open_names_are_typed_by_their_contexts(home):
    train_open(home)
    tagger = MentionTagger.open("open", home=home, device="cpu")
    [document] = tagger(["Dora lives in Cusco . from Lima comes old Bert . Dora lives in Atlantis ."])
    assert [(name.text, name.type) for name in document.mentions] == [
        ("Dora", "PER"), ("Cusco", "LOC"), ("Lima", "LOC"), ("Bert", "PER"), ("Dora", "PER"),
        ("Atlantis", "LOC"),
    ]  # fmt: skip


# -- from the command line ------------------------------------------------------


def test_the_command_trains_it_with_its_options(home):
    done = run(
        "train", "kalm", "--data", home.path / "train.txt", "--dev", home.path / "dev.txt", "--kb", "types",
        "--name", "typed", "--bidirectional", "--open", "--epochs", 1,
        "--home", home.path, "--device", "cpu",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "typed: lm, types@" in done.out and "perplexity" in done.out
    config = KIND.read(find_trained(home, "typed")).config
    assert config["open_names"] and config["bidirectional"]
    listed = run("models", "info", "typed", "--home", home.path)
    assert listed.code == 0 and "kalm" in listed.out


def test_a_model_whose_manifest_says_otherwise_is_refused(trained, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(find_trained(trained, "forward"), folder)
    manifest = json.loads((folder / "model.json").read_text())
    manifest["bidirectional"] = True
    (folder / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedModel, match="other directions"):
        open_model(folder, "language_model", home=trained, device="cpu")


def test_a_tagger_of_one_direction_is_refused(trained):
    model = open_model("forward", "language_model", home=trained, device="cpu")
    assert isinstance(model.vocabulary, TypedVocabulary)
    with pytest.raises(UsageError, match="no KALM of both directions"):
        KALMTagger(model)
    with pytest.raises(UsageError, match="type_prior is 2"):
        KALMTagger(open_model("both", "language_model", home=trained, device="cpu"), type_prior=2)


def test_perplexity_takes_a_list_of_files_and_one_row_at_least(trained):
    path = trained.path / "dev.txt"
    for name in ("both", "forward"):
        model = open_model(name, "language_model", home=trained, device="cpu")
        assert model.perplexity([str(path)]) == model.perplexity([path])
        for single_path in (path, str(path)):
            with pytest.raises(TypeError, match="a list of files is expected, not one path"):
                model.perplexity(single_path)
        with pytest.raises(UsageError, match="rows is 0; it is at least 1"):
            model.perplexity([path], rows=0)


def test_what_is_no_document_is_told_to_a_tagger_in_one_sentence(trained):
    tagger = open_model("both", "tagger", home=trained, device="cpu")
    with pytest.raises(TypeError, match=r"a document is a str or a kgkit\.Document, not NoneType"):
        [*tagger(["Oslo", None])]


def test_weights_that_give_no_probabilities_are_damage(trained, tmp_path):
    folder = shutil.copytree(find_trained(trained, "forward"), tmp_path / "copy")
    path = folder / "kalm" / "model.safetensors"
    finite = load_file(path)
    manifest = json.loads((folder / "model.json").read_text()) | {"sizes": {}}
    (folder / "model.json").write_text(json.dumps(manifest))
    changed = {name: torch.full_like(weight, 3e38) for name, weight in finite.items() if weight.ndim == 2}
    save_file({**finite, **changed, "members": finite["members"], "prior": finite["prior"]}, path)
    with pytest.raises(DamagedModel, match="the model forward gives words the log likelihood nan"):
        open_model(folder, home=trained, device="cpu").perplexity([trained.path / "dev.txt"])
    folder = shutil.copytree(find_trained(trained, "both"), tmp_path / "names")
    (folder / "model.json").write_text(
        json.dumps(json.loads((folder / "model.json").read_text()) | {"sizes": {}})
    )
    broken = folder / "kalm" / "model.safetensors"
    tables = load_file(broken)
    changed = {name: torch.full_like(weight, 3e38) for name, weight in tables.items() if weight.ndim == 2}
    save_file({**tables, **changed, "members": tables["members"], "prior": tables["prior"]}, broken)
    with pytest.raises(DamagedModel, match="the model both gives words no probabilities: its weights are"):
        [*open_model(folder, "tagger", home=trained, device="cpu")(["Dora lives in Lima ."])]
    folder = tmp_path / "copy"
    for kind in (torch.int64, torch.bool):
        save_file({name: weight.to(kind) for name, weight in finite.items()}, path)
        with pytest.raises(DamagedModel, match="cannot be loaded"):
            open_model(folder, home=trained, device="cpu")
    config = json.loads((folder / "kalm" / "config.json").read_text())
    (folder / "kalm" / "config.json").write_text(json.dumps(config | {"layers": 10**9}))
    with pytest.raises(DamagedModel, match="1000000000"):
        open_model(folder, home=trained, device="cpu")


def test_names_and_types_of_a_model_do_nothing_to_a_terminal(trained, tmp_path):
    folder = shutil.copytree(find_trained(trained, "both"), tmp_path / "copy")
    types = ["L\x1b[31m", "P\x07"]
    for path, change in (
        (folder / "model.json", {"sizes": {}, "types": types, "name": "x\x1b[2J"}),
        (folder / "kalm" / "config.json", {"types": types}),
    ):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    gold, encoder = tmp_path / "gold.conll", tiny_encoder(tmp_path / "encoder")
    gold.write_text("Oslo B-LOC\nlives O\n\n")
    scored = run("evaluate", "ner", "--data", gold, "--model", folder, "--home", tmp_path)
    taught = run(
        "train", "tagger", "--teacher", folder, "--data", trained.path / "dev.txt", "--name", "taught",
        "--encoder", encoder, "--size", 16, "--epochs", 1, "--home", tmp_path, "--device", "cpu",
    )  # fmt: skip
    for done in (scored, taught):
        assert done.code == 0, done.err
        assert not {"\x1b", "\x07"} & {*done.out, *done.err}
