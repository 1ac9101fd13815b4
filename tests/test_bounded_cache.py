"""Caches keep to their bounds in bytes, whatever the names and texts that come."""

import pickle
import random
import sys

import numpy as np
import pytest

from kgkit.bounded_cache import BoundedCache, weight_of
from kgkit.candidates import AliasConfig, AliasGenerator
from kgkit.kb.similar import SimilarNames
from kgkit.linking import Linker, LinkSettings
from kgkit.reconciling import reconciler as reconciler_module
from kgkit.reconciling.reconciler import ReconcileConfig, Reconciler
from kgkit.types import Candidate, Document, Entity
from tests.small_kb import surfaces_kb

ALPHABETS = ("abcdefgh", "åäöß", "漢字仮名", "😀👩\u200d🔬", "\0\x0b\x1f", "\u202e\ufffd\uffff", "a b-c'd ")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with surfaces_kb(tmp_path_factory.mktemp("surfaces")) as kb:
        yield kb


def strange_texts(count, length, seed=0):
    """Return texts of many alphabets, from one character to some times the length."""
    drawn = random.Random(seed)
    lengths = [1, 31, 33, 1_000, 1_001, length, 5 * length]
    return ["".join(drawn.choices(drawn.choice(ALPHABETS), k=drawn.choice(lengths))) for _ in range(count)]


def check(cache):
    """Check that a cache keeps to its bound by its own account, and that the account is right."""
    assert cache.weight <= cache.bound
    rows = sum(100 + weight_of(key) + weight_of(value) for key, value in cache.items())
    assert cache.weight == rows
    texts = sum(sys.getsizeof(key) for key in cache if isinstance(key, str))
    assert texts <= cache.weight


def test_a_cache_forgets_all_rather_than_pass_its_bound():
    cache = BoundedCache[str, tuple[str, ...]](10_000)
    for text in strange_texts(300, 200):
        assert cache.keep(text, (text,)) == (text,)
        check(cache)
    assert cache


def test_a_row_that_is_heavier_than_the_bound_is_not_kept():
    cache = BoundedCache[str, int](1_000)
    assert cache.keep("short", 1) == 1
    assert cache.keep("long" * 1_000, 2) == 2
    assert dict(cache) == {}
    assert cache.weight == 0


def test_a_row_that_is_there_is_weighed_once():
    cache = BoundedCache[str, int](1_000)
    cache.keep("a", 1)
    weight = cache.weight
    cache.keep("a", 1)
    assert cache.weight == weight
    cache.clear()
    assert (cache.weight, len(cache)) == (0, 0)


def test_a_pickle_of_a_cache_is_empty():
    cache = BoundedCache[str, int](1_000)
    cache.keep("a", 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert (copy.bound, len(copy)) == (1_000, 0)
    assert copy.keep("b", 2) == 2


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("x" * 1_000, 1_000),
        ("😀" * 1_000, 4_000),
        (["x" * 1_000, ("y" * 1_000,)], 2_000),
        ({"key" * 100: {"z" * 1_000}}, 1_300),
        (np.zeros(1_000, np.float32), 4_000),
        (np.zeros(1_000, np.float32)[:1], 4_000),  # a view keeps all of it
        (np.frombuffer(bytes(1_000), np.uint8, 2), 1_000),
        (Document("0", "x" * 1_000), 1_000),
        (Candidate(Entity("e" * 1_000), None, 1.0), 1_000),
        (ReconcileConfig(kind="k" * 900), 900),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_weight_counts_what_a_value_holds(value, least):
    assert least <= weight_of(value) <= 3 * least + 1_000


def test_the_names_that_a_reconciler_remembers_have_a_bound(kb, monkeypatch):
    monkeypatch.setattr(reconciler_module, "_CACHE_BYTES", 200_000)
    reconcile = Reconciler(kb, ReconcileConfig(top=5))
    names = strange_texts(150, 20_000)
    first = [reconcile(name) for name in names]
    check(reconcile._cache)
    assert [reconcile(name) for name in names] == first
    check(reconcile._cache)


def test_a_long_name_is_looked_up_as_it_stands_only(kb, monkeypatch):
    from tests.small_kb import ENDLESS

    reconcile = Reconciler(kb)
    assert reconcile(ENDLESS).key == "Endless"
    monkeypatch.setattr(SimilarNames, "proposed", lambda *_: pytest.fail("it was compared"))
    for name in strange_texts(50, 5_000):
        if len(name) > 1_000:
            assert reconcile(name).candidates == ()


def test_what_a_generator_remembers_of_tokens_and_spans_has_a_bound(kb):
    generator = AliasGenerator(kb, AliasConfig(cache_mb=0.3))
    for text in strange_texts(150, 5_000):
        generator.mentions(f"New York {text} Times Square")
        memories = [generator._cased, generator._uncased]
        caches = [each for memory in memories for each in (memory.entries, memory.spans, memory.compounds)]
        kept = sum(weight_of(key) for cache in (*caches, generator._cutter) for key in cache)
        kept += sum(weight_of(each) for memory in memories for each in memory.entries.values())
        newest = 40 * max(map(sys.getsizeof, (text, "")))  # what came last is kept, however heavy
        assert kept <= 300_000 + newest


def test_what_a_linker_remembers_of_names_has_a_bound(kb, monkeypatch):
    monkeypatch.setattr("kgkit.linking.linker._CACHE_BYTES", 3_000)
    linker = Linker(kb, LinkSettings(nil=True))
    for text in strange_texts(50, 1_000):
        list(linker([f"The New York Times and {text} Times Square 北京 dog"]))
        for cache in (linker._names, linker._elsewhere, linker._meanings):
            check(cache)
