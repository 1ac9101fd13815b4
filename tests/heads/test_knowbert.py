"""KnowBert's layer between the layers of an encoder: what plain loops say, wherever it stands."""

import copy
import dataclasses
import gc
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from kgkit.errors import DamagedModel, NotThere, UsageError  # noqa: E402
from kgkit.heads import KAR, EntityLinkerConfig, KARConfig, KnowBert  # noqa: E402
from kgkit.heads.knowbert import usual_layers  # noqa: E402
from kgkit.methods.knowbert_settings import linker_config  # noqa: E402
from tests.knowbert_twin import inputs_of, layer_norm, linear, numbers, slow_block, slow_linker  # noqa: E402

H, E, D, F = 8, 8, 5, 2
LINKER = EntityLinkerConfig(hidden=H, width=E, stored=D, features=F, heads=2, inner=10, scorer=7)
CONFIG = KARConfig(linker=LINKER, layer=1, heads=2, inner=12)
LINKERS = {
    "wordnet": LINKER,
    "aida": dataclasses.replace(LINKER, loss="margin", null=True, threshold=0.0),
}
PIECES = 9


def far(module, seed=0, spread=0.5):
    """The module in double precision, every parameter drawn anew: it is not near its beginning."""
    drawn = torch.Generator().manual_seed(seed)
    module.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=spread, generator=drawn)
    return module


def bert(kind="BertModel", layers=3, **settings):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=H, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32, initializer_range=0.5, **settings,
    )  # fmt: skip
    return getattr(transformers, kind)(config).double().eval()


def known(sentences=3, pieces=PIECES, seed=0):
    return inputs_of(LINKER, sentences=sentences, pieces=pieces, seed=seed)


def single(inputs):
    """In single precision."""
    return type(inputs)(
        *(item.float() if item is not None and item.is_floating_point() else item for item in inputs)
    )


def words(sentences=3, pieces=PIECES, seed=0):
    return torch.randint(4, 40, (sentences, pieces), generator=torch.Generator().manual_seed(seed))


# -- the layer --------------------------------------------------------------


@pytest.mark.parametrize("linker", LINKERS.values(), ids=LINKERS)
def test_the_layer_is_what_plain_loops_say(linker):
    kar = far(KAR(dataclasses.replace(CONFIG, linker=linker)))
    inputs, weights = inputs_of(linker), numbers(kar)
    spans = {place: [] for place in range(len(inputs.hidden))}
    for (sentence, _), _, mean, span in slow_linker(kar.linker, inputs):
        spans[sentence].append(layer_norm(weights, "span_norm", span + mean))  # (6)
    with torch.no_grad():
        found, _ = kar(inputs)
    for sentence, states in enumerate(inputs.hidden.numpy()):
        for place, state in enumerate(states):
            word = linear(weights, "linker.project", state)  # (1)
            word = slow_block(weights, "block.", word, spans[sentence], CONFIG.heads)
            wanted = layer_norm(weights, "norm", state + linear(weights, "back", word))
            np.testing.assert_allclose(found[sentence, place].numpy(), wanted, atol=1e-10)


@pytest.mark.parametrize(
    ("task", "stored", "millions"),
    [("el", 300, 2.42), ("wsd", 200 + 2048 + 5, 1.91), ("wsd", 200 + 384 + 5, 1.57)],
)
def test_as_many_parameters_are_added_as_published(task, stored, millions):
    kar = KAR(KARConfig(linker=linker_config(task, 768, stored), layer=10))
    numbers = sum(parameter.numel() for parameter in kar.parameters())
    assert numbers / 1e6 == pytest.approx(millions, abs=0.005)


def test_the_way_back_undoes_the_way_there():
    kar = KAR(dataclasses.replace(CONFIG, linker=dataclasses.replace(LINKER, width=12, heads=4)))
    hidden = torch.randn(5, H, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(kar.back(kar.linker.project(hidden)), hidden, atol=1e-4, rtol=1e-4)


def test_narrower_than_the_encoder_it_undoes_what_can_be_undone():
    kar = KAR(dataclasses.replace(CONFIG, linker=dataclasses.replace(LINKER, width=4)))
    with torch.no_grad():
        kar.linker.project.bias.normal_()
    kar.invert()
    there = kar.linker.project(torch.randn(5, H))
    torch.testing.assert_close(kar.linker.project(kar.back(there)), there, atol=1e-4, rtol=1e-4)


def test_silenced_it_leaves_the_encoder_as_it_was_but_for_the_norm():
    kar = KAR(CONFIG).double().eval()
    kar.silence()
    inputs = inputs_of(LINKER)
    with torch.no_grad():
        found, _ = kar(inputs)
        assert torch.equal(found, kar.norm(inputs.hidden))


# -- in an encoder ----------------------------------------------------------


def by_hand(model, kars, knowledge, ids):
    """The layers of an encoder one after the other, and what stands between them."""
    hidden = model.embeddings(ids)
    for number in range(len(model.encoder.layer) + 1):
        if number:
            hidden = model.encoder.layer[number - 1].__class__.forward(
                model.encoder.layer[number - 1], hidden
            )
        for name, kar in kars.items():
            if kar.config.layer == number and name in knowledge:
                hidden, _ = kar(knowledge[name]._replace(hidden=hidden))
    return hidden


@pytest.mark.parametrize("layer", [0, 1, 2, 3])
def test_it_stands_behind_the_layer_that_is_named(layer):
    knowbert = far(KnowBert(bert(), {"a": dataclasses.replace(CONFIG, layer=layer)}))
    ids, knowledge = words(), {"a": known()}
    output = knowbert(knowledge, input_ids=ids)
    wanted = by_hand(knowbert.model, knowbert.kars, knowledge, ids)
    torch.testing.assert_close(output.model.last_hidden_state, wanted)
    plain = knowbert.model(input_ids=ids).last_hidden_state
    assert not torch.allclose(wanted, plain)
    assert output.linked["a"].scores.shape == knowledge["a"].candidates.shape


@pytest.mark.parametrize("places", [(1, 2), (2, 2)], ids=["two layers", "one layer"])
def test_two_knowledge_bases_follow_each_other(places):
    configs = {
        name: dataclasses.replace(CONFIG, layer=place)
        for name, place in zip(("b.2", "a"), places, strict=True)
    }
    knowbert = far(KnowBert(bert(), configs))
    ids, knowledge = words(), {"a": known(seed=1), "b.2": known(seed=2)}
    output = knowbert(knowledge, input_ids=ids)
    wanted = by_hand(knowbert.model, knowbert.kars, knowledge, ids)
    torch.testing.assert_close(output.model.last_hidden_state, wanted)
    assert [*output.linked] == ["b.2", "a"]


def test_without_a_knowledge_base_it_is_the_encoder_bit_for_bit():
    model, ids = bert().float(), words()
    before = model(input_ids=ids).last_hidden_state
    weights = copy.deepcopy(model.state_dict())
    empty, with_one = KnowBert(model, {}), KnowBert(model, {"a": CONFIG})
    for found in (
        empty({}, input_ids=ids).model.last_hidden_state,
        with_one({}, input_ids=ids).model.last_hidden_state,
        model(input_ids=ids).last_hidden_state,
    ):
        assert torch.equal(found, before)
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())


def test_a_model_that_was_let_go_is_nobodys():
    model = bert()
    knowbert = KnowBert(model, {"a": CONFIG})
    assert len([hook for part in model.modules() for hook in part._forward_hooks]) == 2
    knowbert.detach()
    assert not any(part._forward_hooks for part in model.modules())
    gone = weakref.ref(knowbert)
    del knowbert
    gc.collect()
    assert gone() is None


def test_what_is_known_is_among_the_hidden_states():
    knowbert = far(KnowBert(bert(), {"a": CONFIG}))
    ids = words()
    states = knowbert({"a": known()}, input_ids=ids, output_hidden_states=True).model.hidden_states
    plain = knowbert.model(input_ids=ids, output_hidden_states=True).hidden_states
    same = [torch.equal(state, plain_state) for state, plain_state in zip(states, plain, strict=True)]
    assert same == [True, False, False, False]


def test_order_size_and_padding_of_a_batch_change_nothing():
    knowbert = far(KnowBert(bert(), {"a": CONFIG}))
    ids, inputs = words(), known()
    mask = torch.ones_like(ids)
    whole = knowbert({"a": inputs}, input_ids=ids, attention_mask=mask).model.last_hidden_state
    order = [2, 0, 1]
    for place, row in enumerate(order):
        part = type(inputs)(*(None if tensor is None else tensor[row : row + 1] for tensor in inputs))
        alone = knowbert({"a": part}, input_ids=ids[row : row + 1]).model.last_hidden_state
        torch.testing.assert_close(alone[0], whole[row])
        turned = type(inputs)(*(None if tensor is None else tensor[order] for tensor in inputs))
        again = knowbert({"a": turned}, input_ids=ids[order]).model.last_hidden_state
        torch.testing.assert_close(again[place], whole[row])
    longer = torch.nn.functional.pad(ids, (0, 4))
    seen = torch.nn.functional.pad(mask, (0, 4))
    padded = knowbert({"a": inputs}, input_ids=longer, attention_mask=seen).model.last_hidden_state
    torch.testing.assert_close(padded[:, :PIECES], whole)


def test_what_stands_on_top_of_the_encoder_reads_what_is_known():
    model = bert("BertForMaskedLM")
    knowbert = far(KnowBert(model, {"a": CONFIG}))
    ids = words()
    output = knowbert({"a": known()}, input_ids=ids, labels=ids)
    wanted = by_hand(model.bert, knowbert.kars, {"a": known()}, ids)
    torch.testing.assert_close(output.model.logits, model.cls(wanted))
    output.model.loss.backward()
    assert all(parameter.grad is not None for parameter in knowbert.kars["a"].block.parameters())


@pytest.mark.parametrize("kind", ["Roberta", "Electra", "DistilBert", "MPNet"])
def test_it_stands_in_encoders_of_other_kinds(kind):
    settings = {"hidden_size": H, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    if kind == "DistilBert":
        settings = {"dim": H, "n_layers": 2, "n_heads": 2, "hidden_dim": 16}
    elif kind == "Electra":
        settings["embedding_size"] = H
    config = getattr(transformers, f"{kind}Config")(vocab_size=40, max_position_embeddings=32, **settings)
    model = getattr(transformers, f"{kind}Model")(config).double().eval()
    ids = words()
    before = model(input_ids=ids).last_hidden_state
    knowbert = far(KnowBert(model, {"a": CONFIG}))
    model.load_state_dict(model.state_dict())
    found = knowbert({"a": known()}, input_ids=ids)
    assert found.model.last_hidden_state.shape == before.shape
    assert "a" in found.linked
    assert not torch.allclose(found.model.last_hidden_state, model(input_ids=ids).last_hidden_state)


def test_layers_that_are_one_are_refused():
    config = transformers.AlbertConfig(
        vocab_size=40, embedding_size=H, hidden_size=H, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    with pytest.raises(UsageError, match="AlbertModel has no 3 layers"):
        KnowBert(transformers.AlbertModel(config), {"a": CONFIG})


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="behind layer 4; the encoder has 3"):
        KnowBert(bert(), {"a": dataclasses.replace(CONFIG, layer=4)})
    with pytest.raises(UsageError, match="width 6, the encoder has 8"):
        KnowBert(bert(), {"a": dataclasses.replace(CONFIG, linker=dataclasses.replace(LINKER, hidden=6))})
    with pytest.raises(UsageError, match="cannot be divided among 3 heads"):
        dataclasses.replace(CONFIG, heads=3)
    with pytest.raises(UsageError, match="layer is -1; it is 0 or more"):
        dataclasses.replace(CONFIG, layer=-1)
    checkpointing = KnowBert(bert(), {"a": CONFIG}).train()
    for layer in checkpointing.model.encoder.layer:
        layer.gradient_checkpointing = True
    with pytest.raises(UsageError, match="gradient checkpointing"):
        checkpointing({"a": known()}, input_ids=words())


def test_a_copy_stands_on_its_own():
    knowbert, ids = far(KnowBert(bert(), {"a": CONFIG})), words()
    before = knowbert({"a": known()}, input_ids=ids).model.last_hidden_state
    other = copy.deepcopy(knowbert)
    with torch.no_grad():
        for parameter in knowbert.parameters():
            parameter.zero_()
    torch.testing.assert_close(other({"a": known()}, input_ids=ids).model.last_hidden_state, before)


def test_knowledge_bases_stand_where_they_were_published():
    assert usual_layers(12, 1) == [10]
    assert usual_layers(12, 2) == [10, 11]
    assert usual_layers(6, 1) == [4]
    assert usual_layers(6, 2) == [4, 5]
    assert usual_layers(6, 3) == [3, 4, 5]
    assert usual_layers(1, 3) == [0, 1, 1]


# -- a part of it -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM", "BertForPreTraining"])
def test_places_that_are_asked_for_are_those_of_the_whole(kind):
    knowbert = far(KnowBert(bert(kind), {"a": CONFIG}))
    ids, asked = words(), torch.zeros(3, PIECES, dtype=torch.bool)
    asked[0, [1, 4]] = asked[2, 8] = True
    whole = knowbert({"a": known()}, input_ids=ids)
    some = knowbert({"a": known()}, positions=asked, input_ids=ids)
    assert some.model[0].shape[:-1] == (3,)
    torch.testing.assert_close(some.model[0], whole.model[0][asked])
    torch.testing.assert_close(some.linked["a"].scores, whole.linked["a"].scores)
    if kind == "BertForPreTraining":  # what reads whole texts still does
        torch.testing.assert_close(some.model.seq_relationship_logits, whole.model.seq_relationship_logits)
    part = knowbert({"a": known()}, positions=asked, input_ids=ids, return_dict=False)
    torch.testing.assert_close(part.model[0], some.model[0])
    again = knowbert({"a": known()}, input_ids=ids)
    assert torch.equal(again.model[0], whole.model[0])


def test_the_linker_that_is_asked_for_says_the_same_and_nothing_behind_it_runs():
    layers = {"below": 1, "same": 2, "asked": 2, "beside": 2, "above": 3}
    knowbert = far(
        KnowBert(bert(), {name: dataclasses.replace(CONFIG, layer=layer) for name, layer in layers.items()})
    )
    ids, ran = words(), []
    for number, layer in enumerate(knowbert.model.encoder.layer, 1):
        layer.register_forward_pre_hook(lambda *_, number=number: ran.append(number))
    for name, kar in knowbert.kars.items():
        kar.register_forward_pre_hook(lambda *_, name=name: ran.append(name))
    knowledge = {name: known(seed=seed) for seed, name in enumerate(layers)}
    whole = knowbert(knowledge, input_ids=ids)
    plain = knowbert.model(input_ids=ids).last_hidden_state
    ran.clear()
    some = knowbert(knowledge, until="asked", input_ids=ids)
    assert ran == [1, "below", 2, "same"]
    assert some.model is None and [*some.linked] == ["below", "same", "asked"]
    for name, linked in some.linked.items():
        for tensor, wanted in zip(linked, whole.linked[name], strict=True):
            assert torch.equal(tensor, wanted)
    # A call that ends early leaves nothing behind.
    states = knowbert(knowledge, until="below", input_ids=ids, output_hidden_states=True)
    assert [*states.linked] == ["below"]
    assert torch.equal(knowbert.model(input_ids=ids).last_hidden_state, plain)
    assert torch.equal(knowbert(knowledge, input_ids=ids).model[0], whole.model[0])


# -- one after the other ----------------------------------------------------


def test_a_knowledge_base_that_is_added_afterwards_stands_as_if_it_had_been_there():
    kbs = {"a": CONFIG, "b": dataclasses.replace(CONFIG, linker=LINKERS["aida"])}
    ids = words()
    knowledge = {name: single(inputs_of(config.linker)) for name, config in kbs.items()}
    at_once = KnowBert(bert().float(), kbs, torch.Generator().manual_seed(1)).eval()
    later = KnowBert(bert().float(), {}).eval()
    drawn = torch.Generator().manual_seed(1)
    for name, config in kbs.items():
        later.add(name, config, drawn)
    assert [*later.kars] == ["a", "b"]
    assert not any(part.training for part in later.modules())  # as the model was
    output, later_output = at_once(knowledge, input_ids=ids), later(knowledge, input_ids=ids)
    assert torch.equal(output.model[0], later_output.model[0])
    assert torch.equal(output.linked["b"].scores, later_output.linked["b"].scores)
    assert output.linked.keys() == later_output.linked.keys()
    assert {name: weight.shape for name, weight in at_once.state_dict().items()} == {
        name: weight.shape for name, weight in later.state_dict().items()
    }


def test_what_cannot_be_added_is_refused_and_changes_nothing():
    knowbert = KnowBert(bert(), {"a": CONFIG})
    with pytest.raises(UsageError, match="the knowledge base a is in this model already"):
        knowbert.add("a", CONFIG)
    with pytest.raises(UsageError, match="behind layer 4; the encoder has 3"):
        knowbert.add("b", dataclasses.replace(CONFIG, layer=4))
    assert [*knowbert.kars] == ["a"]


# -- Algorithm 1 ------------------------------------------------------------


def test_what_a_step_of_the_algorithm_trains_has_a_gradient_and_nothing_else():
    kbs = {"a": CONFIG, "b": dataclasses.replace(CONFIG, layer=2, linker=LINKERS["aida"])}
    knowbert = far(KnowBert(bert("BertForMaskedLM"), kbs))
    knowledge = {name: inputs_of(config.linker, seed=1) for name, config in kbs.items()}
    ids = words()

    def moved(loss_of):
        knowbert.zero_grad(set_to_none=True)
        loss_of(knowbert(knowledge, input_ids=ids, labels=ids)).backward()
        return {name for name, parameter in knowbert.named_parameters() if parameter.grad is not None}

    def linking(output):
        total = 0
        for name, linked in output.linked.items():
            gold = torch.zeros_like(linked.scores, dtype=torch.bool)
            gold[..., 0] = True
            linker = knowbert.kars[name].linker
            loss = linker.loss(linked, gold)
            total = total + (loss if loss.requires_grad else 0)
        return total

    for number, name in enumerate(kbs):
        knowbert.unfreeze(name)
        reached = moved(linking)
        assert reached == {name for name, parameter in knowbert.named_parameters() if parameter.requires_grad}
        assert reached and all(name.startswith(f"_kars.{number}.linker.") for name in reached)
    knowbert.unfreeze()
    reached = moved(lambda output: output.model.loss + linking(output))
    assert reached == {name for name, _ in knowbert.named_parameters()}
    with pytest.raises(UsageError, match="no knowledge base c"):
        knowbert.unfreeze("c")


def test_a_linker_that_is_trained_alone_is_alone_in_training_mode():
    linker = dataclasses.replace(LINKER, mask=True, threshold=0.0)
    kbs = {"a": dataclasses.replace(CONFIG, linker=linker), "b": dataclasses.replace(CONFIG, layer=2)}
    knowbert = KnowBert(bert("BertForMaskedLM"), kbs)
    knowbert.unfreeze("a")
    knowbert.train()
    asked = {name for name, parameter in knowbert.named_parameters() if parameter.requires_grad}
    own = {f"_kars.0.linker.{name}" for name, _ in knowbert.kars["a"].linker.named_parameters()}
    assert asked == own - {"_kars.0.linker.mask", "_kars.0.linker.null"}  # which no loss of it reaches
    chosen = set(knowbert.kars["a"].linker.modules())
    assert {module for module in knowbert.modules() if module.training} == chosen
    knowbert.eval()
    assert not any(module.training for module in knowbert.modules())
    knowbert.unfreeze()
    knowbert.train()
    assert all(module.training for module in knowbert.modules())
    assert all(parameter.requires_grad for parameter in knowbert.parameters())


def test_both_steps_of_the_algorithm_reach_the_same_when_only_a_part_is_computed():
    kbs = {"a": CONFIG, "b": dataclasses.replace(CONFIG, layer=2, linker=LINKERS["aida"])}
    knowbert = far(KnowBert(bert("BertForPreTraining"), kbs))
    knowledge = {name: inputs_of(config.linker, seed=1) for name, config in kbs.items()}
    ids = words()
    asked = torch.zeros_like(ids, dtype=torch.bool)
    asked[:, 2] = True

    def reached(loss):
        knowbert.zero_grad(set_to_none=True)
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in knowbert.named_parameters()}
        return {name for name, gradient in gradients.items() if gradient is not None and gradient.any()}

    def linking(name):
        linked = knowbert(knowledge, until=name, input_ids=ids).linked[name]
        gold = torch.zeros_like(linked.scores, dtype=torch.bool)
        gold[..., 0] = True
        return knowbert.kars[name].linker.loss(linked, gold)

    for number, name in enumerate(kbs):
        knowbert.unfreeze(name)
        own = reached(linking(name))
        assert own and all(name.startswith(f"_kars.{number}.linker.") for name in own)
    knowbert.unfreeze()
    below = reached(linking("a"))
    assert not any(name.startswith(("_kars.1", "model.bert.encoder.layer.2", "model.cls")) for name in below)
    assert any(name.startswith("model.bert.encoder.layer.0") for name in below)
    told = knowbert(knowledge, positions=asked, input_ids=ids).model
    every = reached(told.prediction_logits.square().sum() + told.seq_relationship_logits.square().sum())
    for part in ("_kars.0.linker", "_kars.0.block", "_kars.0.back", "_kars.1.linker", "_kars.1.norm",
                 "model.bert.embeddings", "model.bert.encoder.layer.2", "model.bert.pooler",
                 "model.cls.predictions", "model.cls.seq_relationship"):  # fmt: skip
        assert any(name.startswith(part) for name in every), part


# -- on disk ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_saved_model_is_the_same_again(kind, tmp_path):
    kbs = {"b.2": CONFIG, "a": dataclasses.replace(CONFIG, layer=2, linker=LINKERS["aida"])}
    told = {"a": {"aida@0123/text": "4567"}}
    knowbert = KnowBert(bert(kind), kbs, trained_with=told).float().eval()
    knowbert.save_pretrained(tmp_path / "model")
    again = KnowBert.from_pretrained(tmp_path / "model", device="cpu")
    ids = words()
    knowledge = {name: single(inputs_of(config.linker)) for name, config in kbs.items()}
    output, loaded_output = (each(knowledge, input_ids=ids).model[0] for each in (knowbert, again))
    assert torch.equal(output, loaded_output)
    assert again.trained_with == told and [*again.kars] == ["b.2", "a"]


def test_a_saved_model_is_read_without_what_stood_on_top(tmp_path):
    knowbert = KnowBert(bert("BertForPreTraining"), {"a": CONFIG}).float().eval()
    knowbert.save_pretrained(tmp_path)
    ids, knowledge = words(), {"a": single(known())}
    whole = KnowBert.from_pretrained(tmp_path, device="cpu")
    bare = KnowBert.from_pretrained(tmp_path, model="AutoModel", device="cpu")
    assert type(whole.model).__name__ == "BertForPreTraining" and type(bare.model).__name__ == "BertModel"
    assert not any(part.training for part in bare.modules())
    states = knowbert(knowledge, input_ids=ids, output_hidden_states=True).model
    assert torch.equal(bare(knowledge, input_ids=ids).model.last_hidden_state, states.hidden_states[-1])
    assert torch.equal(whole(knowledge, input_ids=ids).model[0], states.prediction_logits)
    with pytest.raises(UsageError, match="transformers has no class BirdModel"):
        KnowBert.from_pretrained(tmp_path, model="BirdModel", device="cpu")


def test_what_is_no_saved_model_is_refused(tmp_path):
    with pytest.raises(NotThere, match="no head in"):
        KnowBert.from_pretrained(tmp_path)
    folder = tmp_path / "model"
    KnowBert(bert(), {"a": CONFIG}).save_pretrained(folder)
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"BertModel"', '"BirdModel"'))
    with pytest.raises(DamagedModel, match="BirdModel, which transformers lacks"):
        KnowBert.from_pretrained(folder, device="cpu")
    (folder / "config.json").write_text(config.replace('"inner": 12', '"inner": 13'))
    with pytest.raises(DamagedModel, match="cannot be loaded"):
        KnowBert.from_pretrained(folder, device="cpu")
    (folder / "config.json").write_text(config)
    (folder / "encoder" / "model.safetensors").write_bytes(b"")
    with pytest.raises(DamagedModel, match="the encoder of the head"):
        KnowBert.from_pretrained(folder, device="cpu")
