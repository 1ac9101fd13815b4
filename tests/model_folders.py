"""Folders of models that nobody has trained: drawn at random, with a manifest that says what they are."""

from dataclasses import asdict
from pathlib import Path

import msgspec

from kgkit.encoder import Encoder
from kgkit.inputs.tagging import TaggingConfig
from kgkit.models.kinds import TaggerManifest
from kgkit.models.manifest import FORMAT, MANIFEST
from tests.tiny_encoder import tiny_encoder


def tagger_folder(folder: Path) -> Path:
    """Write a tagger of persons into *folder*, and return it."""
    from kgkit.heads import WordTagger, WordTaggerConfig

    encoder = Encoder.load(str(tiny_encoder(folder.with_name("encoder"))), device="cpu")
    WordTagger(encoder, WordTaggerConfig(types=("PER",))).save_pretrained(folder / "head")
    manifest = TaggerManifest(
        format=FORMAT, kind="tagger", name="names", types=("PER",), encoder="tiny", fingerprint="",
        reader=asdict(TaggingConfig(size=16, context=3)),
    )  # fmt: skip
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))  # without sizes: tests change files
    return folder
