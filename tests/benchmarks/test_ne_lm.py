"""NE-LM, the control of KALM: probabilities, typed texts, and trainings that go on after a stop."""

import json
import lzma
import re
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit.training.kalm  # noqa: E402
from benchmarks import ne_lm  # noqa: E402
from benchmarks.kalm import Bench  # noqa: E402
from benchmarks.kalm_recipes import RecipeBench  # noqa: E402
from kgkit.home import Home  # noqa: E402
from kgkit.methods.kalm_settings import KALMTraining  # noqa: E402
from tests.small_kb import build, type_records  # noqa: E402

TYPES = type_records(LOC={"Oslo": 3.0, "Rome": 3.0, "Lima": 1.0}, PER={"Anna": 3.0, "Paris": 3.0})
SENTENCE = "{} B-PER\nlives O\nin O\n{} B-LOC\n. O\n\n"
SIZES = {"embedding": 8, "hidden": 10, "type_width": 4, "layers": 2}
WORDS = 7
MEMBERS = torch.tensor([
    [True, True, True, True, False, False, True],
    [True, False, False, False, True, False, True],
    [True, False, False, False, True, True, False],
])  # fmt: skip
"""Words 0 (unknown), 4 and 6 may be of several types, or of one and general."""


def model_of(bidirectional, dtype=torch.float64):
    torch.manual_seed(0)
    return ne_lm.NELM(MEMBERS, SIZES, bidirectional).to(dtype).eval()


TYPED = torch.tensor([[1, 4 + WORDS, 2, 5 + 2 * WORDS, 3, 6 + WORDS, 6, 1]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ne-lm")
    build(folder, TYPES, name="types").close()
    (folder / "conll2003").mkdir()
    for part in ("train", "testa", "testb"):
        with lzma.open(folder / "conll2003" / f"eng.{part}.xz", "wt") as file:
            file.write("-DOCSTART- O\n\n")
            for number in range(20):
                people, cities = ("Anna", "Bert", "Zoe"), ("Oslo", "Rome", "Paris")
                file.write(SENTENCE.format(people[number % 3], cities[number % 3]))
    return folder


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ne_lm, "SIZES", {**ne_lm.SIZES, **SIZES})
    monkeypatch.setattr(ne_lm, "RATE", 2e-2)
    for module in (ne_lm, kgkit.training.kalm):
        monkeypatch.setattr(module, "LENGTH", 8)
    monkeypatch.setattr(kgkit.training.kalm, "ROWS", 2)


# -- the model ----------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [False, True])
def test_probabilities_of_all_words_are_one_together(bidirectional):
    model = model_of(bidirectional)
    output = model(TYPED)
    shape = output.vectors.shape[:2]
    likelihoods = torch.stack(
        [model.log_likelihood(output, torch.full(shape, word)) for word in range(WORDS)]
    )
    torch.testing.assert_close(likelihoods.exp().sum(0), torch.ones(shape).double())


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_word_has_the_sum_over_what_it_may_be(bidirectional):
    """A slow twin: the type model's softmax, and of each type the softmax over its names."""
    model = model_of(bidirectional)
    output = model(TYPED)
    types, names = model.type_model, model.name_model
    says = torch.softmax(output.vectors @ types.embedding.T + types.bias, -1)  # general words, then types
    logits = output.names.vectors @ names.embedding.T + names.bias
    general = MEMBERS[0].nonzero()[:, 0].tolist()
    for word in range(WORDS):
        expected = says[..., general.index(word)] if word in general else torch.zeros(())
        for kind in (1, 2):
            if MEMBERS[kind, word]:
                within = torch.softmax(logits.masked_fill(~MEMBERS[kind], -torch.inf), -1)[..., word]
                expected = expected + says[..., len(general) + kind - 1] * within
        likelihood = model.log_likelihood(output, torch.full(output.vectors.shape[:2], word))
        torch.testing.assert_close(likelihood.exp(), expected)


def test_the_type_of_the_word_to_be_predicted_is_not_looked_at():
    model = model_of(bidirectional=True)
    as_general, as_city = TYPED.clone(), TYPED.clone()
    as_general[0, 5], as_city[0, 5] = 6, 6 + WORDS
    first, second = (model(typed) for typed in (as_general, as_city))
    before = model.log_likelihood(first, as_general[:, 1:-1])[0, 4]
    torch.testing.assert_close(before, model.log_likelihood(second, as_city[:, 1:-1])[0, 4])
    assert not torch.allclose(first.vectors[0, 2], second.vectors[0, 2])  # its neighbours read it


def test_names_are_replaced_by_their_types_and_names_without_a_type_are_unknown():
    model = model_of(bidirectional=False)
    assert model.replaced(TYPED)[0].tolist() == [1, 5, 2, 6, 3, 5, 4, 1]
    assert model.replaced(torch.tensor([5, 4])).tolist() == [0, 0]


def test_the_loss_is_that_of_the_types_and_of_names_of_the_right_type():
    model = model_of(bidirectional=False)
    for part in (model.type_model, model.name_model):
        object.__setattr__(part.config, "activation", 0.0)
        object.__setattr__(part.config, "slowness", 0.0)
    output, targets = model(TYPED[:, :-1]), TYPED[:, 1:]
    real = torch.ones_like(targets, dtype=torch.bool)
    real[0, 1] = False
    types, names = model.type_model, model.name_model
    says = torch.log_softmax(output.vectors @ types.embedding.T + types.bias, -1)
    of_types = -says.gather(-1, model.replaced(targets)[..., None])[..., 0][real].mean()
    logits = output.names.vectors @ names.embedding.T + names.bias
    of_names = [
        -torch.log_softmax(logits[0, at].masked_fill(~MEMBERS[kind], -torch.inf), -1)[word]
        for at, (kind, word) in enumerate(divmod(target, WORDS) for target in targets[0].tolist())
        if kind and real[0, at]
    ]  # fmt: skip
    torch.testing.assert_close(model.loss(output, targets, real), of_types + torch.stack(of_names).mean())
    general = torch.full_like(targets, 2)  # without any name the loss is that of the types, and is finite
    assert torch.isfinite(model.loss(output, general, real))


def test_states_are_carried_from_a_part_of_a_text_to_the_next():
    model = model_of(bidirectional=False)
    every = model(TYPED)
    first = model(TYPED[:, :3])
    second = model(TYPED[:, 3:], None, first.state)
    torch.testing.assert_close(torch.cat([first.vectors, second.vectors], 1), every.vectors)
    names = torch.cat([first.names.vectors, second.names.vectors], 1)
    torch.testing.assert_close(names, every.names.vectors)
    assert len(first.state) == 2 * SIZES["layers"]


# -- texts --------------------------------------------------------------------


def test_words_of_a_text_have_the_types_of_its_labels(folder):
    bench = Bench(Home(folder), folder, "types", [])
    training = KALMTraining(data=(bench.text("train"),))
    texts = ne_lm.conll_texts(bench, training)
    words, types = (part.tolist() for part in np.divmod(texts.parts["testa"], len(texts.vocabulary))[::-1])
    spelled = [texts.vocabulary.words[word] for word in words]
    assert spelled[:7] == ["<eos>", "Anna", "lives", "in", "Oslo", ".", "<eos>"]
    assert types[:7] == [0, 2, 0, 0, 1, 0, 0] and texts.vocabulary.types == ("LOC", "PER")


def test_a_type_has_the_names_of_the_knowledge_base_and_those_with_its_label(folder):
    bench = Bench(Home(folder), folder, "types", [])
    texts = ne_lm.conll_texts(bench, KALMTraining(data=(bench.text("train"),)))
    names = [
        {texts.vocabulary.words[word] for word in row.nonzero()[0].tolist()} - {"<unk>"}
        for row in texts.members
    ]
    assert names[0] == {"lives", "in", ".", "<eos>"}
    assert names[1] == {"Oslo", "Rome", "Lima", "Paris"} and names[2] == {"Anna", "Bert", "Zoe", "Paris"}
    assert texts.members[:, texts.vocabulary.unknown].all()


def test_a_labelled_file_of_another_text_is_refused(folder, tmp_path):
    bench = Bench(Home(folder), folder, "types", [])
    texts = ne_lm.conll_texts(bench, KALMTraining(data=(bench.text("train"),)))
    (tmp_path / "text.txt").write_text("Anna lives in Lima .\n")
    with pytest.raises(SystemExit, match=re.escape("has the word 'Lima' where")):
        ne_lm.labelled_words(texts.vocabulary, tmp_path / "text.txt", bench.gold("testa"))


def test_words_of_recipes_have_the_likeliest_type_of_the_knowledge_base(tmp_path):
    for name in ("corpus", "superingredients"):
        (tmp_path / "recipe" / name).mkdir(parents=True)
    (tmp_path / "recipe" / "superingredients" / "dairy.txt").write_text("milk\ncream\n")
    (tmp_path / "recipe" / "superingredients" / "seasonings.txt").write_text("salt\n")
    recipe = {"ingredients": ["2 cups Milk", "salt"], "directions": ["Heat the milk."]}
    for part in ("train", "valid", "test"):
        with lzma.open(tmp_path / "recipe" / "corpus" / f"recipes_{part}.jsonl.xz", "wt") as file:
            file.write((json.dumps(recipe) + "\n") * 20)
    bench = RecipeBench(Home(tmp_path), tmp_path, 1.0, [])
    training = KALMTraining(data=(bench.text("train"),), style="recipe")
    texts = ne_lm.recipe_texts(bench, training)
    types, words = np.divmod(texts.parts["valid"], len(texts.vocabulary))
    typed = {
        texts.vocabulary.words[word]: kind for word, kind in zip(words.tolist(), types.tolist(), strict=True)
    }
    assert typed == {"<eos>": 0, "2": 0, "cups": 0, "milk": 1, "salt": 2, "heat": 0, "the": 0}


# -- training -----------------------------------------------------------------


def test_models_are_trained_once_and_a_stopped_training_goes_on(folder, small, capsys, monkeypatch):
    arguments = ["--home", folder, "--data", folder, "--kb", "types", "--device", "cpu"]
    arguments = [*map(str, arguments), "--epochs", "2"]
    ne_lm.main(arguments)
    table = capsys.readouterr().out
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in table.splitlines() if "ne-lm" in line}
    assert rows.keys() == {"| ne-lm", "| ne-lm-both"}
    assert all(float(row[0]) < np.log(16) and row[4] == "2" for row in rows.values())
    monkeypatch.setattr(ne_lm, "fit", lambda *_, **__: pytest.fail("trained again"))
    ne_lm.main(arguments)
    assert capsys.readouterr().out == table


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_training_that_was_stopped_ends_with_the_same_scores(
    folder, small, tmp_path, monkeypatch, bidirectional
):
    bench = Bench(Home(folder), folder, "types", [])
    training = KALMTraining(data=(bench.text("train"),), bidirectional=bidirectional, epochs=2)
    texts = ne_lm.conll_texts(bench, training)
    undisturbed = ne_lm.train(texts, training, tmp_path / "undisturbed", "cpu")
    make_loss, calls = ne_lm.loss_with_states, []

    def interrupt(model, carried):
        loss = make_loss(model, carried)

        def stopping(module, batch):
            calls.append(None)
            if len(calls) == 9:
                raise KeyboardInterrupt
            return loss(module, batch)

        return stopping

    with monkeypatch.context() as patch:
        patch.setattr(ne_lm, "loss_with_states", interrupt)
        patch.setattr(ne_lm, "schedule_of", every_step_is_written)
        with pytest.raises(KeyboardInterrupt):
            ne_lm.train(texts, training, tmp_path / "stopped", "cpu")
    assert not (tmp_path / "stopped" / "scores.json").exists()
    scores = ne_lm.train(texts, training, tmp_path / "stopped", "cpu")
    assert {part: scores[part] for part in ("testa", "testb")} == {
        part: undisturbed[part] for part in ("testa", "testb")
    }


def every_step_is_written(training, device):
    return replace(kgkit.training.kalm.schedule_of(training, device), checkpoint_seconds=0.0)


def test_it_learns_which_type_comes_next(folder, small, tmp_path):
    bench = Bench(Home(folder), folder, "types", [])
    training = KALMTraining(data=(bench.text("train"),))
    texts = ne_lm.conll_texts(bench, training)
    early, late = (
        ne_lm.train(texts, replace(training, epochs=epochs), tmp_path / f"{epochs}", "cpu")["testb"]["nats"]
        for epochs in (1, 12)
    )
    assert late < early - 0.3
