"""Linkers that explain their scores: made of those that are served, and gone with them."""

import asyncio
import gc
import weakref
from dataclasses import replace

import pytest

from kgkit.linking import Linker
from kgkit.serving.page.text_views import CANDIDATES, ExplainingLinkers
from kgkit.types import Document
from tests.small_kb import surfaces_kb


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with surfaces_kb(tmp_path_factory.mktemp("surfaces")) as kb:
        yield kb


@pytest.fixture
def base(kb):
    return Linker(kb)


@pytest.fixture
def linkers():
    return ExplainingLinkers()


def links_of(linker, text):
    [document] = linker([Document("1", text)])
    return document.links


TEXT = "Turkey and New York are not US."


def test_links_are_those_of_the_linker_that_is_served(base, linkers):
    explained = links_of(linkers.linker(base, None, coherence=False), TEXT)
    plain = links_of(base, TEXT)
    assert [(link.start, link.entity, link.score) for link in explained] == [
        (link.start, link.entity, link.score) for link in plain
    ]
    assert all(row.parts is not None for link in explained for row in link.candidates)
    assert all(row.parts is None for link in plain for row in link.candidates)


def test_scorer_and_generator_are_shared(base, linkers):
    linker = linkers.linker(base, 0.5, coherence=True)
    assert linker.scorer is base.scorer
    assert linker.generator is base.generator
    assert (linker.config.threshold, linker.config.top_k, linker.config.explain) == (0.5, CANDIDATES, True)
    assert linker.coherence is not None


def test_equal_settings_have_one_linker_so_that_requests_share_batches(base, linkers):
    assert linkers.linker(base, None, coherence=False) is linkers.linker(base, None, coherence=False)
    assert linkers.linker(base, 0.5, coherence=False) is not linkers.linker(base, None, coherence=False)
    assert linkers.linker(base, None, coherence=True) is not linkers.linker(base, None, coherence=False)


def test_without_a_least_score_that_of_the_base_holds(kb, base, linkers):
    strict = Linker(kb, replace(base.config, threshold=0.9))
    assert linkers.linker(strict, None, coherence=False).config.threshold == 0.9
    assert linkers.linker(strict, 0.0, coherence=False).config.threshold == 0.0


def test_a_base_with_coherence_keeps_it(kb, linkers):
    agreeing = Linker(kb, replace(Linker(kb).config, coherence="graph"))
    assert linkers.linker(agreeing, None, coherence=False).coherence is not None


def test_linkers_of_any_number_of_least_scores_are_not_remembered(base, linkers):
    variants = [linkers.linker(base, number / 100, coherence=False) for number in range(100)]
    assert len({id(linker) for linker in variants}) == 100
    assert len(linkers._linkers[base]) <= 16


def test_linkers_go_with_the_linker_that_is_served(kb, linkers):
    base = Linker(kb)
    linker = weakref.ref(linkers.linker(base, None, coherence=False))
    assert linker() is not None
    del base
    gc.collect()
    assert linker() is None


def test_texts_of_the_page_wait_in_the_queue_of_the_service(page_service, browser):
    before = page_service.queue.documents
    assert browser.get("/?text=a+dog&kb=facts").status_code == 200
    assert page_service.queue.documents == before + 1


def test_requests_at_once_get_their_own_links(page_service, browser):
    base = page_service.served("facts").linker()
    linker = ExplainingLinkers().linker(base, None, coherence=False)
    texts = ["a dog", "the cat and the mouse", "nothing", "paw"]

    async def link_all():
        return await asyncio.gather(
            *(page_service.queue.link((linker,), [Document(text, text)]) for text in texts)
        )

    answers = asyncio.run(link_all())
    assert [document.text for [document] in answers] == texts
    assert [len(document.links) for [document] in answers] == [1, 2, 0, 1]
