"""The settings of a linker's training: what does not fit is refused, and its command repeats all of them."""

import shlex
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from kgkit.errors import UnknownName, UsageError
from kgkit.inputs import SpanConfig
from kgkit.linking.gloss import GlossConfig
from kgkit.linking.ridge import RidgeConfig
from kgkit.training.linkers.coherence import CoherenceTraining
from kgkit.training.linkers.cross_fitting import folds_of
from kgkit.training.linkers.head import HeadConfig
from kgkit.training.linkers.labelled import MissingGold
from kgkit.training.linkers.settings import LAYERS, TYPES, UNTRAINED, LinkerTraining, command_of, usual_reader

DATA, GOLD = (Path("a.xml"), Path("b.xml")), (Path("a.key"), Path("b.key"))


def wsd(**settings):
    return LinkerTraining(**{"task": "wsd", "data": DATA, "gold": GOLD, **settings})


def words_of(training):
    command = command_of("wordnet", "senses", training)
    assert command.startswith("kgkit train linker ")
    return shlex.split(command)[3:]


def values_of(words, option):
    return [value for name, value in pairwise(words) if name == option]


@pytest.mark.parametrize("name", ["ridge ", "Ridge", "", "linear"])
def test_an_unknown_type_is_refused_with_those_there_are(name):
    with pytest.raises(UnknownName) as refused:
        wsd(type=name)
    assert refused.value.names == TYPES


@pytest.mark.parametrize("name", ["mlm", "WSD", ""])
def test_an_unknown_task_is_refused(name):
    with pytest.raises(UnknownName, match="there are: wsd, el, text"):
        LinkerTraining(task=name, data=DATA)


@pytest.mark.parametrize("name", UNTRAINED)
def test_a_type_that_is_not_trained_needs_coherence_above_it(name):
    with pytest.raises(UsageError, match=f"^{name} is not trained: link with --model {name}, or"):
        wsd(type=name)
    assert wsd(type=name, coherence=CoherenceTraining()).type == name


def test_a_size_is_that_of_the_reader_which_is_given_once_and_of_what_is_trained():
    assert values_of(words_of(wsd(size=32)), "--size") == ["32"]
    assert "--size" not in words_of(wsd())
    with pytest.raises(UsageError, match="size is 0; it is 1 or more"):
        wsd(size=0)
    with pytest.raises(
        UsageError, match="size is a setting of the reader of mentions, and the reader has one"
    ):
        wsd(size=32, reader=SpanConfig())
    with pytest.raises(UsageError, match="--size is a setting of the types that are trained, not of gloss"):
        wsd(size=32, type="gloss", coherence=CoherenceTraining())


@pytest.mark.parametrize(("size", "expected"), [(None, (62, 15)), (16, (16, 4)), (200, (200, 24))])
def test_a_size_that_is_named_is_taken_whatever_the_encoder_reads(size, expected):
    """`SpanReader` refuses it where the encoder reads fewer pieces."""
    encoder = SimpleNamespace(
        model=SimpleNamespace(config=SimpleNamespace(num_hidden_layers=6)),
        tokenizer=SimpleNamespace(num_special_tokens_to_add=lambda: 2),
        window=64,
    )
    reader = usual_reader("ridge", encoder, size)
    assert (reader.size, reader.context) == expected


@pytest.mark.parametrize(("data", "gold"), [(DATA, ()), (DATA, GOLD[:1]), (DATA[:1], GOLD)])
def test_senses_have_a_file_of_gold_for_each_file_of_data(data, gold):
    with pytest.raises(
        UsageError, match=f"^files of data: {len(data)}, files of gold: {len(gold)}; name a file"
    ):
        wsd(data=data, gold=gold)


def test_entities_have_no_files_of_gold():
    with pytest.raises(
        UsageError, match="the data of the task el contain the gold: do not name files of gold"
    ):
        LinkerTraining(task="el", data=DATA, gold=GOLD)


def test_without_data_there_have_to_be_examples():
    with pytest.raises(UsageError, match="name one or more files of data"):
        wsd(data=(), gold=())
    assert wsd(data=(), gold=(), examples=True).files == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"without": (Path("c"),)}, "--without leaves out usage examples: add --examples"),
        ({"task": "el", "gold": (), "candidates": "lemma"}, "lemmas of --task wsd: leave it out"),
        (
            {"type": "prior", "vectors": "text", "coherence": CoherenceTraining()},
            "prior reads no vectors: leave out --vectors",
        ),
        ({"neighbours": ("kind", "part", "kind")}, "the relation kind is named twice"),
        ({"data": (Path("a.xml"), Path("b/../a.xml"))}, r"/a\.xml is named twice: .* --data once$"),
        (
            {
                "task": "el", "gold": (), "type": "head", "head": HeadConfig(portable="kb"), "teacher": "t",
                "text": (Path("x"), Path("y"), Path("x")),
            },
            r"/x is named twice: .* --text once$",
        ),
    ],
)  # fmt: skip
def test_settings_without_an_effect_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        wsd(**settings)


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (LinkerTraining, {"task": "el", "data": Path("a")}, "it is a list, each item a path$"),
        (LinkerTraining, {"task": "el", "data": (3,)}, "data is .3,.; it is a list, each item a path"),
        (LinkerTraining, {"task": "wsd", "data": ("a",), "gold": "b"}, "gold is 'b'; it is a list"),
        (wsd, {"candidates": "x"}, "candidates is 'x'; it is 'lemma' or 'surface'"),
        (wsd, {"neighbours": "any"}, "neighbours is 'any'; it is a list, each item a string"),
        (wsd, {"ridge": None}, "ridge is None; it is a RidgeConfig"),
        (HeadConfig, {"dropout": 2}, "dropout is 2; it is from 0 to below 1"),
        (HeadConfig, {"dropout": -1}, "dropout is -1; it is from 0 to below 1"),
        (HeadConfig, {"dropout": float("nan")}, "dropout is nan; it is from 0 to below 1"),
        (HeadConfig, {"heads": 1.5}, "heads is 1.5; it is a whole number"),
        (HeadConfig, {"bf16": "x"}, "bf16 is 'x'; it is True, False or 'auto'"),
        (GlossConfig, {"temperature": float("nan")}, "temperature is nan; it is above 0"),
        (GlossConfig, {"temperature": 0}, "temperature is 0; it is above 0"),
        (GlossConfig, {"size": 0}, "size is 0; it is 1 or more"),
        (GlossConfig, {"context": -1}, "context is -1; it is 0 or more"),
        (RidgeConfig, {"balance": None}, "balance is None; it is a number"),
        (RidgeConfig, {"yielding": "no"}, "yielding is 'no'; it is True or False"),
        (CoherenceTraining, {"members": 2.5}, "members is 2.5; it is a whole number"),
        (CoherenceTraining, {"popularity": "in"}, "popularity is 'in'; it is a list"),
    ],
)
def test_a_setting_of_another_type_is_refused_with_what_it_is(config, settings, message):
    with pytest.raises(UsageError, match=message):
        config(**settings)


def test_strings_stand_for_paths_and_whole_numbers_for_others():
    training = wsd(data=["a.xml", "b.xml"], gold=GOLD)
    assert training == wsd() and repr(training) == repr(wsd())
    assert repr(HeadConfig(ridge=2)) == repr(HeadConfig())


def test_the_files_of_a_training_are_all_that_it_reads():
    assert wsd(examples=True, without=(Path("c"),)).files == (*DATA, *GOLD, Path("c"))


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (HeadConfig, {"width": 0}), (HeadConfig, {"epochs": 0}), (HeadConfig, {"batch": 0}),
        (HeadConfig, {"heads": 0}), (HeadConfig, {"lr": 0}), (HeadConfig, {"ridge": -1}),
        (HeadConfig, {"seed": -1}),
        (CoherenceTraining, {"members": 1}), (CoherenceTraining, {"rounds": -1}),
        (CoherenceTraining, {"hidden": -1}), (CoherenceTraining, {"epochs": 0}),
        (CoherenceTraining, {"batch": 0}), (CoherenceTraining, {"lr": 0}),
        (CoherenceTraining, {"dropout": 1}),
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_refused_with_its_value_and_the_range(config, settings):
    [(name, value)] = settings.items()
    with pytest.raises(UsageError, match=rf"^{name} is {value}; it is (above |from )?\d"):
        config(**settings)


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (HeadConfig, {"seed": 2**32}, "seed is 4294967296; it is from 0 to 4294967295"),
        (HeadConfig, {"seed": 2**32 - 2, "heads": 3}, "from 0 to 4294967293, as there are 3 of them, one"),
        (CoherenceTraining, {"seed": -1}, "seed is -1; it is 0 or more"),
    ],
)
def test_a_seed_is_one_that_numpy_takes_and_so_are_those_of_further_heads(config, settings, message):
    with pytest.raises(UsageError, match=message):
        config(**settings)
    assert HeadConfig(seed=2**32 - 3, heads=3).heads == 3


@pytest.mark.parametrize("portable", ["", "KB", "both"])
def test_the_prior_of_a_portable_head_is_one_of_two(portable):
    with pytest.raises(UsageError, match="it is 'kb' or 'data'"):
        HeadConfig(portable=portable)


def test_settings_at_the_edge_of_their_range_are_accepted():
    assert CoherenceTraining(rounds=0, hidden=0, members=2, dropout=0).members == 2
    assert HeadConfig(ridge=0, heads=1, portable="data").heads == 1


# -- the command that trains it again ---------------------------------------


def test_an_encoder_is_that_of_a_type_that_reads_texts():
    assert wsd(encoder="mini", type="gloss", coherence=CoherenceTraining()).encoder == "mini"
    with pytest.raises(UsageError, match="--encoder is for types that read texts"):
        wsd(encoder="mini", type="prior", coherence=CoherenceTraining())


def test_the_command_has_each_file_of_data_with_its_gold():
    words = words_of(wsd())
    assert values_of(words, "--data") == [*map(str, DATA)]
    assert values_of(words, "--gold") == [*map(str, GOLD)]
    assert words.index("a.key") < words.index("b.xml")
    assert values_of(words, "--kb") == ["wordnet"] and values_of(words, "--name") == ["senses"]
    assert values_of(words, "--task") == ["wsd"] and values_of(words, "--type") == ["ridge"]


def test_the_command_leaves_out_what_is_as_usual():
    words = words_of(wsd(head=HeadConfig(), type="head"))
    assert {word for word in words if word.startswith("--")} == {
        "--task", "--type", "--name", "--kb", "--data", "--gold",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": "lemma"}, ["--candidates", "lemma"]),
        ({"vectors": "minilm"}, ["--vectors", "minilm"]),
        ({"encoder": "mini"}, ["--encoder", "mini"]),
        ({"examples": True}, ["--examples"]),
        (
            {"examples": True, "without": (Path("x y"), Path("z"))},
            ["--examples", "--without", "x y", "--without", "z"],
        ),
        ({"type": "head", "head": HeadConfig(seed=3, epochs=9)}, ["--epochs", "9", "--seed", "3"]),
        ({"type": "head", "head": HeadConfig(control=True)}, ["--control"]),
        ({"type": "head", "head": HeadConfig(portable="kb", heads=2)}, ["--portable", "kb", "--heads", "2"]),
        ({"ridge": RidgeConfig(balance=0.5, yielding=True)}, ["--balance", "0.5", "--yielding"]),
        ({"ridge": RidgeConfig(prior="data")}, ["--prior", "data"]),
        ({"neighbours": ("kind", "any")}, ["--neighbours", "kind", "--neighbours", "any"]),
        ({"coherence": CoherenceTraining()}, ["--coherence"]),
        ({"coherence": CoherenceTraining(nil=True)}, ["--coherence", "--nil"]),
        (
            {"coherence": CoherenceTraining(popularity=("in", "out"), seed=4)},
            ["--coherence", "--popularity", "in", "--popularity", "out", "--seed", "4"],
        ),
    ],
)
def test_the_command_has_the_options_of_what_is_not_as_usual(settings, words):
    usual, own = words_of(wsd()), words_of(wsd(**settings))
    start = [word.replace("ridge", settings.get("type", "ridge")) for word in usual]
    assert own[: len(start)] == start
    rest = own[len(start) :]
    assert sorted(rest) == sorted(words)


TAUGHT = {"task": "text", "gold": (), "type": "head", "teacher": "large"}


def test_the_command_of_a_taught_head_names_its_teacher_and_no_task():
    words = words_of(wsd(**TAUGHT, head=HeadConfig(portable="kb")))
    assert values_of(words, "--teacher") == ["large"] and values_of(words, "--portable") == ["kb"]
    assert "--task" not in words and values_of(words, "--data") == [*map(str, DATA)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teacher": ""}, "plain text has no gold: name the model that says what it means with --teacher"),
        ({"teacher": "auto"}, "--teacher auto names no model: say which one the head is to learn from"),
        (
            {"task": "wsd", "gold": GOLD},
            "the data of --task wsd have gold: name files of plain text with --text",
        ),
        ({"type": "ridge"}, "add --type head --portable kb"),
        ({"head": None}, "add --type head --portable kb"),
        ({"head": HeadConfig(portable="data")}, "add --type head --portable kb"),
        ({"coherence": CoherenceTraining()}, "leave out --coherence"),
    ],
)
def test_what_a_teacher_does_not_go_with_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        wsd(**{**TAUGHT, "head": HeadConfig(portable="kb"), **settings})


@pytest.mark.parametrize("ridge", [{"yielding": True}, {"prior": "data"}])
@pytest.mark.parametrize("portable", ["kb", "data"])
def test_a_portable_head_has_no_weights_to_be_set(ridge, portable):
    chosen = {"type": "head", "ridge": RidgeConfig(**ridge)}
    with pytest.raises(UsageError, match=f"leave them out beside --portable {portable}$"):
        wsd(head=HeadConfig(portable=portable), **chosen)
    assert wsd(head=HeadConfig(), **chosen).ridge == RidgeConfig(**ridge)


def test_texts_of_neighbours_are_for_the_types_that_read_texts():
    settings = {"type": "prior", "coherence": CoherenceTraining()}
    with pytest.raises(UsageError, match=f"by the types ridge and head, not by {settings['type']}"):
        wsd(neighbours=("kind",), **settings)


def test_one_seed_is_given_once():
    training = wsd(type="head", head=HeadConfig(seed=4), coherence=CoherenceTraining(seed=4))
    assert words_of(training).count("--seed") == 1


def test_a_file_with_odd_characters_is_quoted():
    words = words_of(wsd(data=(Path("a 'b' $c.xml"),), gold=(Path("g;h"),)))
    assert values_of(words, "--data") == ["a 'b' $c.xml"] and values_of(words, "--gold") == ["g;h"]


# -- readers, folds and gold that is missing --------------------------------


def encoder(layers, window):
    model = SimpleNamespace(config=SimpleNamespace(num_hidden_layers=layers))
    tokenizer = SimpleNamespace(num_special_tokens_to_add=lambda: 2)
    return SimpleNamespace(model=model, tokenizer=tokenizer, window=window)


@pytest.mark.parametrize("model_type", LAYERS)
def test_a_reader_takes_the_layers_that_the_encoder_has(model_type):
    assert usual_reader(model_type, encoder(12, 512)).layers == LAYERS[model_type]
    shallow = usual_reader(model_type, encoder(2, 512)).layers
    assert shallow == tuple(layer for layer in LAYERS[model_type] if layer >= -3)


@pytest.mark.parametrize("window", [10, 34, 128])
def test_the_windows_of_a_reader_fit_the_encoder(window):
    settings = usual_reader("ridge", encoder(12, window))
    assert settings.size <= window - 2 and 4 * settings.context <= settings.size


@pytest.mark.parametrize(("count", "folds"), [(2, 2), (7, 3), (50, 5)])
def test_each_document_is_in_one_fold_and_folds_differ_by_one_at_most(count, folds):
    masks = [*folds_of(count, folds)]
    assert len(masks) == folds and sum(mask.astype(int) for mask in masks).tolist() == [1] * count
    sizes = [int(mask.sum()) for mask in masks]
    assert max(sizes) - min(sizes) <= 1


def test_missing_gold_is_counted_by_mention_and_by_entity(caplog):
    missing = MissingGold(SimpleNamespace(name="towns", build="abc"))
    missing.warn()
    assert not caplog.records
    for gold, in_kb in (("a", True), ("b", False), ("b", False), ("c", True)):
        missing.note(gold, in_kb=in_kb)
    missing.warn()
    assert "1 gold entities, of 2 of 4 mentions, are not in the knowledge base" in caplog.text
    assert str(missing.error()) == "no training examples: no mention has its gold entity among its candidates"


def test_a_kb_that_lacks_most_of_the_gold_is_named():
    missing = MissingGold(SimpleNamespace(name="towns", build="abc"))
    for gold in "aab":
        missing.note(gold, in_kb=gold == "b")
    assert "the gold entities of 2 of 3 mentions are not in the knowledge base towns@abc" in str(
        missing.error()
    )


def test_the_options_of_the_command_are_settings():
    from kgkit.training.linkers import settings

    names = {field.name for field in fields(HeadConfig)}
    assert {*settings._OPTIONS} <= names
