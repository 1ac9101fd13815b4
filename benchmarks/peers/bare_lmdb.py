"""Bare LMDB: the floor under every look-up by key, with records like kgkit's own."""

import json
from pathlib import Path
from typing import Any

import lmdb
import msgspec

from benchmarks.timing import passes


class Record(msgspec.Struct, gc=False):
    """What a synset's record holds."""

    key: str
    label: str
    description: str
    kind: str
    pos: str
    attributes: dict[str, Any]


def write_records(out: str) -> None:
    """Write one record a synset, in key order."""
    from nltk.corpus import wordnet

    records = {}
    for synset in wordnet.all_synsets():
        lemmas = [name.replace("_", " ") for name in synset.lemma_names()]
        attributes = {
            "lexfile": synset.lexname(),
            "examples": synset.examples(),
            "frames": synset.frame_ids(),
            "lemmas": lemmas,
        }
        record = Record(synset.name(), lemmas[0], synset.definition(), "synset", synset.pos(), attributes)
        records[record.key.encode()] = msgspec.msgpack.encode(record)
    Path(out).mkdir()
    with lmdb.open(out, map_size=1 << 30) as environment, environment.begin(write=True) as transaction:
        for key in sorted(records):
            transaction.put(key, records[key], append=True)


def look_up(what: str, records: str, keys: str, count: int) -> dict[str, float]:
    """Measure `get`s of random keys: `views` of the page, or `decoded` from msgpack to `Record`."""
    names = [name.encode() for name, _ in json.loads(Path(keys).read_text())["synsets"][:count]]
    decode = msgspec.msgpack.Decoder(Record).decode
    with (
        lmdb.open(records, readonly=True, lock=False) as environment,
        environment.begin(buffers=True) as transaction,  # a view of the page, not a copy
    ):
        get: Any = transaction.get

        def fetch(keys: list[bytes]) -> None:
            for key in keys:
                get(key)

        def fetch_and_decode(keys: list[bytes]) -> None:
            for key in keys:
                decode(get(key))

        return passes(fetch if what == "views" else fetch_and_decode, names)
