"""`kgkit evaluate cloze` over a tiny masked language model: questions, filters, files, what is refused."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.evaluation.cloze import NameQuestion
from kgkit.evaluation.facts import ClozeQuestion, cloze_questions
from kgkit.inputs.masking import logits_of
from kgkit.methods.cloze import cloze_guesses, name_guesses, recall_ranks
from kgkit.methods.cloze_opening import open_masked_lm, plain_cloze_model, subject_entities
from tests.cli_helpers import run
from tests.cloze_toys import FACTS, TEMPLATES, home_of_animals, masked_lm_folder, write_files
from tests.tiny_encoder import PIECES, tiny_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return masked_lm_folder(tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("mlm"))


@pytest.fixture(scope="module")
def home(tmp_path_factory, folder):
    return home_of_animals(tmp_path_factory.mktemp("home"), folder)


@pytest.fixture(scope="module")
def masked_lm(home, folder):
    with open_masked_lm(str(folder), home, "cpu") as opened:
        yield opened


@pytest.fixture(scope="module")
def questions():
    every = cloze_questions(FACTS, TEMPLATES).instances
    return [question for question in every if question.hidden == "object"]


@pytest.fixture(scope="module")
def model(masked_lm):
    return plain_cloze_model(masked_lm)


@pytest.fixture
def files(tmp_path):
    facts, templates = write_files(tmp_path)
    return "--data", facts, "--templates", templates


def cloze(home, *args):
    return run("evaluate", "cloze", *args, "--home", home.path, "--device", "cpu")


def logits_by_hand(masked_lm, pieces):
    """What the model predicts for [MASK] in a sequence of word pieces, the last of them."""
    ids = [PIECES.index(piece) if piece != "[MASK]" else len(PIECES) for piece in pieces.split()]
    with torch.no_grad():
        logits = logits_of(masked_lm.model(input_ids=torch.tensor([ids])))[0]
    return logits[len(ids) - 1 - ids[::-1].index(len(PIECES))]


# -- plain questions --------------------------------------------------------


def test_the_words_of_the_vocabulary_are_its_whole_words(model):
    assert set(model.words.values()) == {piece for piece in PIECES if piece[0] not in "[#"}


def test_ranks_are_among_the_words_and_among_the_objects_of_the_relation(masked_lm, model, questions):
    found = cloze_guesses(model, questions)
    assert [question.answer for question in found.no_word] == ["big city"] and not found.too_long
    guess = found.guesses[0]
    logits = logits_by_hand(masked_lm, "[CLS] big dog eats [MASK] [UNK] [SEP]")
    gold = PIECES.index("fruit")
    words = sorted(model.words)
    assert guess.rank == 1 + int((logits[words] > logits[gold]).sum())
    objects = [PIECES.index(word) for word in ("fruit", "tree", "company")]
    assert guess.object_rank == 1 + int((logits[objects] > logits[gold]).sum())
    best = words[int(logits[words].argmax())]
    assert guess.likeliest[0] == PIECES[best] and len(guess.likeliest) == 10
    for size in (1, 2):
        again = cloze_guesses(model, questions, size=size)
        assert [(one.rank, one.object_rank) for one in again.guesses] == [
            (one.rank, one.object_rank) for one in found.guesses
        ]


def test_every_mask_of_a_sentence_is_hidden_and_the_last_is_asked_for(masked_lm, model, questions):
    prediction = model.predict(questions[-1:])
    logits = logits_by_hand(masked_lm, "[CLS] a [MASK] barks and [MASK] ##s [SEP]")
    assert prediction.gold.tolist() == [PIECES.index("dog")] and prediction.counts == [1]
    torch.testing.assert_close(prediction.logits[0], logits)


def test_names_are_asked_of_with_one_mask(masked_lm, model):
    [(question, words)] = name_guesses(model, [NameQuestion("dog", "city")]).items()
    logits = logits_by_hand(
        masked_lm, "[CLS] dog is a [UNK] [UNK] in the [UNK] city [UNK] [MASK] [UNK] [SEP]"
    )
    assert question == ("dog", "city")
    pieces = [*PIECES, "[MASK]"]
    assert words == tuple(pieces[piece] for piece in logits.topk(3).indices.tolist())


def test_a_question_that_does_not_fit_is_counted(model):
    long = ClozeQuestion("1.object", "P", " ".join(["many"] * 30) + " dog", (150, 153), "object")
    found = cloze_guesses(model, [long])
    assert found.too_long == [long] and not found.guesses
    assert list(recall_ranks(model, [long])) == []


# -- vectors of subjects ----------------------------------------------------


def test_subjects_are_found_by_key_by_name_and_as_candidates(home):
    from kgkit.kb import open_kb

    with open_kb("animals", home.path) as kb:
        entities = subject_entities(FACTS, kb, kb.vectors("text"))
        named = [kb.key(int(entity)) if entity >= 0 else "" for entity in entities]
    assert named == ["Q1", "small_cat", "", "", "Q1", ""]  # by key, by name, by alias; Q9 has no vector


# -- the command ------------------------------------------------------------


def test_the_command_scores_each_filter(home, folder, files, tmp_path):
    predictions = tmp_path / "out.jsonl"
    common = (*files, "--encoder", folder, "--name-model", folder)
    done = cloze(home, *common, "--predictions", predictions, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["vocabulary"], told["no_word"], told["too_long"]) == (27, 1, 0)
    counts = {one["filter"]: one["vocabulary"]["questions"] for one in told["sets"]}
    assert (counts["none"], counts["string"]) == (5, 4)
    assert counts["names"] + counts["easy"] == 5
    rows = [json.loads(line) for line in predictions.read_text().splitlines()]
    assert rows[2]["filters"] == ["none", "easy"] and len(rows[0]["likeliest"]) == 10
    table = cloze(home, *common)
    lines = [line.split("\t") for line in table.out.splitlines()]
    assert lines[0][:3] == ["filter", "questions", "Hits@1"]
    assert [line[0] for line in lines[1:]] == [
        "no filter",
        "string match",
        "person name (LAMA-UHN)",
        "taken out",
    ]
    assert "27" in table.err


def test_the_command_compares_with_another_model(home, folder, files, tmp_path):
    plain = tmp_path / "plain.jsonl"
    common = (*files, "--encoder", folder)
    assert cloze(home, *common, "--predictions", plain).code == 0
    rows = [json.loads(line) | {"rank": 27} for line in plain.read_text().splitlines()]
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = cloze(home, *common, "--versus", plain, "--json")
    assert done.code == 0, done.err
    for each in json.loads(done.out)["sets"]:
        compared = each["versus"]
        for k in ("1", "10", "100") if each["vocabulary"]["questions"] else ():
            assert compared[f"hits@{k}"]["score"] == pytest.approx(each["vocabulary"]["macro"][k])
            assert compared[f"hits@{k}"]["versus"] == pytest.approx(float(k == "100"))
    table = cloze(home, *common, "--versus", plain).out.split("\n\n")[1].splitlines()
    assert table[0].split("\t") == [
        "filter", "metric", "versus", "score", "difference", "95 %", "p",
    ]  # fmt: skip
    assert table[1].startswith("no filter\thits@1\t")


def test_questions_of_one_model_alone_are_not_compared(home, folder, files, tmp_path):
    plain = tmp_path / "plain.jsonl"
    assert cloze(home, *files, "--encoder", folder, "--predictions", plain).code == 0
    rows = plain.read_text().splitlines(keepends=True)
    plain.write_text("".join(rows[1:]))
    done = cloze(home, *files, "--encoder", folder, "--versus", plain, "--json")
    assert (
        done.code == 0
        and "1 predictions for questions that the other model has none for are left out" in done.err
    )


def test_predictions_for_other_facts_are_refused_before_anything_is_asked(home, folder, files, tmp_path):
    plain = tmp_path / "plain.jsonl"
    assert cloze(home, *files, "--encoder", folder, "--predictions", plain).code == 0
    plain.write_text(plain.read_text().replace('"fruit"', '"stone"'))
    done = cloze(home, *files, "--encoder", folder, "--versus", plain)
    assert (done.code, done.out) == (1, "") and "it is 'fruit' of 'big dog'" in done.err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "give exactly one of --model NAME"),
        (("--model", "m", "--encoder", "e"), 2, "give exactly one of --model NAME"),
        (("--encoder", "e", "--templates", "none"), 3, "no file none"),
    ],
)
def test_what_does_not_fit_is_refused(home, files, options, code, said):
    done = cloze(home, *files[:2], *options)
    assert done.code == code and said in done.err


@pytest.mark.parametrize(("subject", "obj"), [("dog", "big city"), ("dog " * 40, "fruit")])
def test_where_no_question_can_be_scored_no_scores_are_written(home, folder, files, tmp_path, subject, obj):
    facts = tmp_path / "facts.jsonl"
    facts.write_text(json.dumps({"subject": subject, "relation": "eats", "object": obj}) + "\n")
    done = cloze(home, "--data", facts, *files[2:], "--encoder", folder)
    assert (done.code, done.out) == (2, "") and "no question can be scored" in done.err


def test_an_encoder_without_a_trained_head_is_refused(home, files, tmp_path):
    bare = tiny_encoder(tmp_path / "bare", mask=True)
    done = cloze(home, *files, "--encoder", bare)
    assert done.code == 2 and "has no trained head for masked words" in done.err
