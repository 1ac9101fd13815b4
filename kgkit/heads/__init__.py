"""Heads: what learns on top of an encoder's vectors, one file each. Tensors in, tensors out.

    entity_linker     KnowBert's entity linker, by itself or in a KnowBert
    linker_losses     the losses of that linker
    knowbert          KnowBert: knowledge bases between the layers of an encoder
    ebert             E-BERT: an encoder that reads vectors of entities as if they were word pieces
    ebert_linker      E-BERT-MLM: a masked language model that predicts entities
    kalm              KALM: a language model of words with latent types, without an encoder
    kambert           KAM-BERT: an encoder whose attention is mixed with maps of what is known of a text
    kbert             K-BERT: an encoder that reads sentence trees, by soft positions and the visible matrix
    tagger            names in a text, by a label for each word
    frozen_tagger     the same, over an encoder that stays as it is
    classifier        the label of a text, or of names in it
    linker_network    that of entity_linker, asked without torch
    word_network      that of frozen_tagger, asked without torch; the names that labels of words say
    arrays            layers in NumPy that these two have
    settings          settings of heads on disk
    parts             layers and checks that several heads have
    folder            heads on disk

Importing this package loads no torch; what needs it is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.heads.classifier import Classifier, ClassifierConfig
    from kgkit.heads.ebert import EBert, EBertConfig, EBertInputs
    from kgkit.heads.ebert_linker import EBertLinker, EBertLinkerConfig, EBertLinkerInputs
    from kgkit.heads.entity_linker import EntityLinker, LinkerInputs, LinkerOutput
    from kgkit.heads.frozen_tagger import FrozenWordTagger
    from kgkit.heads.kalm import KALM, KALMConfig, KALMOutput
    from kgkit.heads.kambert import KamBert, KamBertConfig, KamBertInputs
    from kgkit.heads.kbert import KBert, KBertConfig, KBertInputs
    from kgkit.heads.knowbert import KAR, KARConfig, KnowBert, KnowBertConfig, KnowBertOutput
    from kgkit.heads.settings import EntityLinkerConfig, FrozenTaggerConfig, WordTaggerConfig
    from kgkit.heads.tagger import TaggerInputs, WordTagger

_WHERE = {
    "Classifier": ".classifier",
    "ClassifierConfig": ".classifier",
    "EBert": ".ebert",
    "EBertConfig": ".ebert",
    "EBertInputs": ".ebert",
    "EBertLinker": ".ebert_linker",
    "EBertLinkerConfig": ".ebert_linker",
    "EBertLinkerInputs": ".ebert_linker",
    "EntityLinker": ".entity_linker",
    "EntityLinkerConfig": ".settings",
    "FrozenTaggerConfig": ".settings",
    "FrozenWordTagger": ".frozen_tagger",
    "KALM": ".kalm",
    "KALMConfig": ".kalm",
    "KALMOutput": ".kalm",
    "KAR": ".knowbert",
    "KARConfig": ".knowbert",
    "KBert": ".kbert",
    "KBertConfig": ".kbert",
    "KBertInputs": ".kbert",
    "KamBert": ".kambert",
    "KamBertConfig": ".kambert",
    "KamBertInputs": ".kambert",
    "KnowBert": ".knowbert",
    "KnowBertConfig": ".knowbert",
    "KnowBertOutput": ".knowbert",
    "LinkerInputs": ".entity_linker",
    "LinkerOutput": ".entity_linker",
    "TaggerInputs": ".tagger",
    "WordTagger": ".tagger",
    "WordTaggerConfig": ".settings",
}

__all__ = [
    "KALM",
    "KAR",
    "Classifier",
    "ClassifierConfig",
    "EBert",
    "EBertConfig",
    "EBertInputs",
    "EBertLinker",
    "EBertLinkerConfig",
    "EBertLinkerInputs",
    "EntityLinker",
    "EntityLinkerConfig",
    "FrozenTaggerConfig",
    "FrozenWordTagger",
    "KALMConfig",
    "KALMOutput",
    "KARConfig",
    "KBert",
    "KBertConfig",
    "KBertInputs",
    "KamBert",
    "KamBertConfig",
    "KamBertInputs",
    "KnowBert",
    "KnowBertConfig",
    "KnowBertOutput",
    "LinkerInputs",
    "LinkerOutput",
    "TaggerInputs",
    "WordTagger",
    "WordTaggerConfig",
]

__getattr__ = lazy_attributes(__name__, _WHERE)
