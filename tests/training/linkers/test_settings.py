"""The settings of a linker's training: what does not fit is refused, and its command repeats all of them."""

import shlex
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from kgkit.errors import UsageError
from kgkit.inputs import SpanConfig
from kgkit.training.data import folds_of
from kgkit.training.linkers.labelled import MissingGold
from kgkit.training.linkers.settings import LAYERS, LinkerTraining, command_of, usual_reader

DATA, GOLD = (Path("a.xml"), Path("b.xml")), (Path("a.key"), Path("b.key"))


def wsd(**settings):
    return LinkerTraining(**{"data": DATA, "gold": GOLD, **settings})


def words_of(training):
    command = command_of("wordnet", "senses", training)
    assert command.startswith("kgkit train linker ")
    return shlex.split(command)[3:]


def values_of(words, option):
    return [value for name, value in pairwise(words) if name == option]


def test_files_of_gold_say_that_the_data_are_of_senses():
    assert (wsd().task, wsd(gold=()).task) == ("wsd", "el")


@pytest.mark.parametrize(("data", "gold"), [(DATA, GOLD[:1]), (DATA[:1], GOLD)])
def test_senses_have_a_file_of_gold_for_each_file_of_data(data, gold):
    with pytest.raises(UsageError, match=f"{len(data)}.*{len(gold)}"):
        wsd(data=data, gold=gold)


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (LinkerTraining, {"data": (3,)}, "data is .3,."),
        (LinkerTraining, {"data": ()}, "data"),
        (wsd, {"epochs": 0}, "epochs is 0"),
        (wsd, {"epochs": 1.5}, "epochs is 1.5"),
        (wsd, {"seed": -1}, "seed is -1"),
        (wsd, {"seed": 2**32}, "4294967296"),
        (wsd, {"mentions": "names"}, "--mentions"),
        (wsd, {"data": (Path("a.xml"), Path("b/../a.xml"))}, r"/a\.xml is named twice"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(config, settings, message):
    with pytest.raises(UsageError, match=message):
        config(**settings)


def test_strings_stand_for_paths():
    training = wsd(data=["a.xml", "b.xml"], gold=GOLD)
    assert training == wsd() and repr(training) == repr(wsd())


def test_the_files_of_a_training_are_all_that_it_reads():
    assert wsd().files == (*DATA, *GOLD)


# -- the command that trains it again ---------------------------------------


def test_the_command_has_each_file_of_data_with_its_gold():
    words = words_of(wsd())
    assert values_of(words, "--data") == [*map(str, DATA)]
    assert values_of(words, "--gold") == [*map(str, GOLD)]
    assert words.index("a.key") < words.index("b.xml")
    assert values_of(words, "--kb") == ["wordnet"] and values_of(words, "--name") == ["senses"]


def test_the_command_has_what_is_not_as_usual_and_nothing_else():
    words = words_of(wsd())
    assert {word for word in words if word.startswith("--")} == {"--name", "--kb", "--data", "--gold"}
    settings = {"encoder": "mini", "vectors": "text", "epochs": 9, "seed": 3}
    more = words_of(wsd(**settings, reader=SpanConfig()))
    assert more[: len(words)] == words
    assert more[len(words) :] == [
        word for name, value in settings.items() for word in (f"--{name}", str(value))
    ]
    assert values_of(words_of(LinkerTraining(data=DATA, mentions="names")), "--mentions") == ["names"]


def test_a_file_with_odd_characters_is_quoted():
    words = words_of(wsd(data=(Path("a 'b' $c.xml"),), gold=(Path("g;h"),)))
    assert values_of(words, "--data") == ["a 'b' $c.xml"] and values_of(words, "--gold") == ["g;h"]


# -- readers, folds and gold that is missing --------------------------------


def encoder(layers, window):
    pieces = SimpleNamespace(num_special_tokens_to_add=lambda pair: 2)
    return SimpleNamespace(depth=layers, pieces=pieces, window=window)


def test_a_reader_takes_the_layers_that_the_encoder_has():
    assert usual_reader(encoder(12, 512)).layers == LAYERS
    assert usual_reader(encoder(2, 512)).layers == (-1, -2, -3)


@pytest.mark.parametrize("window", [10, 34, 128])
def test_the_windows_of_a_reader_fit_the_encoder(window):
    settings = usual_reader(encoder(12, window))
    assert settings.size <= window - 2 and 4 * settings.context <= settings.size


@pytest.mark.parametrize(("count", "folds"), [(2, 2), (7, 3), (50, 5)])
def test_each_document_is_in_one_fold_and_folds_differ_by_one_at_most(count, folds):
    masks = [*folds_of(count, folds)]
    assert all(np.diff(np.flatnonzero(mask)).max(initial=1) == 1 for mask in masks)
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
