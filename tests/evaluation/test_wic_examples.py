"""What a model that is scored on WiC must not have seen: usage examples of WordNet that are in WiC."""

import json
import lzma
import re

import pytest

import kgkit
from kgkit.candidates import generator_for
from kgkit.embedding.entity_text import Template
from kgkit.embedding.text import TextConfig
from kgkit.training.linkers.labelled import labelled_examples, letters

PARTS = re.compile(r"Word: .*? Sentence 1: (.*) Sentence 2: (.*)", re.DOTALL)


@pytest.fixture(scope="module")
def sentences(shared_data):
    """Both sentences of each question of WiC."""
    folder, found = shared_data / "wic", []
    for path in (folder / "train_part1.jsonl.xz", folder / "train_part2.jsonl"):
        with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as lines:
            for line in lines:
                found += PARTS.fullmatch(json.loads(line)["text"]).groups()
    return found


@pytest.fixture(scope="module")
def wordnet(wordnet_build):
    with kgkit.open_kb("wordnet", home=wordnet_build.parents[3]) as kb:
        yield kb


@pytest.mark.slow
def test_no_usage_example_that_occurs_in_wic_is_learnt(wordnet, sentences):
    without = frozenset(map(letters, sentences))
    examples = [text for entity in wordnet for text in entity.attributes.get("examples", ())]
    known = frozenset(map(letters, examples))
    assert len(sentences) == 10_856
    # 17 of them have the author of the quotation, as the example has; of two glosses a mark is missing.
    assert sum(letters(sentence) in known for sentence in sentences) == 7_665
    generator = generator_for(wordnet, max_candidates=None, overlaps=True)
    learnt = [one.document.text for one in labelled_examples(wordnet, generator, without=without)]
    assert len(learnt) > 30_000
    assert not [text for text in learnt if letters(text) in without]


def test_the_usual_texts_of_entities_hold_no_usage_example(wordnet):
    template = Template(TextConfig().template)
    for entity in wordnet.entities("synset"):
        template(entity)
    assert template.filled == {"lemmas", "description"}
