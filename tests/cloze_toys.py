"""A tiny masked language model, facts about animals, and a knowledge base of some of their subjects."""

import json
from pathlib import Path

import numpy as np

from kgkit.embedding.align import Alignment, Check, Report
from kgkit.embedding.align.alignment import fingerprint_of
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.evaluation.facts import Fact
from kgkit.home import Home
from kgkit.types import Alias, Entity
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, tiny_encoder

FACTS = (
    Fact("big dog", "eats", "fruit", "Q1"),
    Fact("small cat", "eats", "tree", "Q2"),
    Fact("red cat company", "eats", "company", "Q3"),
    Fact("two dog", "P1412", "big", "Q4"),
    Fact("many tree", "P1412", "big city", "Q5"),
    Fact("", "Squad", "dog", "", "a [MASK] barks and [MASK]s"),
)
TEMPLATES = {"eats": "[X] eats [Y] .", "P1412": "[X] is in [Y]"}


def masked_lm_folder(bare: Path, made: Path) -> Path:
    """Write an encoder with a head for masked words that is saved with it, and so counts as trained."""
    import torch
    from transformers import AutoTokenizer, BertForMaskedLM

    tiny_encoder(bare, mask=True)
    torch.manual_seed(1)
    model = BertForMaskedLM.from_pretrained(bare, local_files_only=True)
    model.save_pretrained(made)
    AutoTokenizer.from_pretrained(bare, local_files_only=True).save_pretrained(made)
    return made


def home_of_animals(path: Path, folder: Path) -> Home:
    """Make a home with a knowledge base of some subjects, their vectors, and a map of these."""
    home = Home(path)
    records = (
        Entity("Q1", "big dog", "it barks"), Entity("small_cat", "cat", "it eats"), Entity("Q9", "dog", ""),
        Alias("many tree", "Q1", 1),
    )  # fmt: skip
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    with build(home.path, records, name="animals") as kb:
        template = "{description}"
        embed_text(kb, TextConfig(encoder=str(folder), device="cpu", dtype="float32", template=template))
        vectors = kb.vectors("text")
        weight = np.random.default_rng(0).normal(size=(WIDTH, WIDTH)).astype(np.float32)
        check = Check(anchors=0, accuracy={}, error=0.0)
        report = Report(anchors=0, rank=0, candidates=0, train=check, held_out=None)
        Alignment(
            weight,
            source=vectors.name,
            target=str(folder),
            fingerprint=fingerprint_of(encoder),
            report=report,
        ).save(vectors)
    return home


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write the facts and their templates as JSON lines, and return the two files."""
    facts, templates = folder / "facts.jsonl", folder / "templates.jsonl"
    records = [
        {"masked_sentences": [fact.sentence], "obj_label": fact.object, "sub_label": fact.relation}
        if fact.sentence
        else fact._asdict()
        for fact in FACTS
    ]
    facts.write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = ({"relation": name, "template": text} for name, text in TEMPLATES.items())
    templates.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return facts, templates
