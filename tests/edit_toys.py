"""A small knowledge base of rivers that is edited, and how."""

import json

import kgkit
from kb_builders.jsonl import JSONLBuilder
from kgkit.building.edit import edit_kb
from kgkit.store import verify

HEAD = {"kgkit": {"name": "Rivers", "inverses": {"flows_into": "receives", "near": "near"}}}
LINES = [
    HEAD,
    {"key": "avon", "label": "Avon", "description": "joins the Severn", "kind": "river", "pos": "n",
     "attributes": {"km": 134, "states": ["England"]},
     "aliases": [{"text": "Avon", "count": 6}, {"text": "River Avon", "count": 1}]},
    {"key": "severn", "label": "Severn", "kind": "river", "pos": "n",
     "aliases": [{"text": "Severn", "count": 3}]},
    {"key": "bath", "label": "Bath", "kind": "town", "types": ["spa"]},
    {"key": "wash", "label": "wash", "kind": "deed", "pos": "v", "aliases": ["bath", "to wash away"]},
    {"alias": "Avon", "key": "bath", "count": 2, "sense": "severn"},
    {"surface": "avon", "occurrences": 20, "linked": 8},
    {"surface": "severn", "occurrences": 5, "linked": 3},
    {"redirect": "hafren", "to": "severn"},
    {"redirect": "aquae_sulis", "to": "bath"},
    {"subject": "avon", "relation": "flows_into", "object": "severn"},
    {"subject": "avon", "relation": "near", "object": "bath"},
    {"subject": "bath", "relation": "near", "object": "bath"},
    {"subject": "bath", "relation": "lies_on", "object": "avon"},
    {"subject": "severn", "relation": "lies_on", "object": "severn"},
    {"subject": "severn", "relation": "lies_on", "object": "avon"},
    {"form": "avons", "lemma": "avon", "pos": "n"},
]  # fmt: skip


def build(home, lines=LINES, name="rivers"):
    path = home / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return kgkit.build_kb(JSONLBuilder(), path, name=name, home=home)


def opened(home, name="rivers"):
    return kgkit.open_kb(name, home=home)


def edit(home, *edits):
    built = edit_kb("rivers", edits, home=home)
    assert verify(built.path) == []
    return built
