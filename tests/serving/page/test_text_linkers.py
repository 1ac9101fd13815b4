"""Texts of the page, linked by linkers that explain their scores."""

import asyncio
import json

from kgkit.serving.page.addresses import address
from kgkit.types import Document


def test_links_that_are_explained_are_those_of_the_linker_that_is_served(page_service, browser):
    served = page_service.served("facts")
    [plain], [explained] = (
        linker([Document("1", "a dog and a cat")])
        for linker in (served.linker(), served.linker(explain=True))
    )
    assert [(link.start, link.entity, link.score) for link in explained] == [
        (link.start, link.entity, link.score) for link in plain
    ]
    assert all(row.parts is not None for link in explained for row in link.candidates)
    assert all(row.parts is None for link in plain for row in link.candidates)


def test_texts_of_the_page_wait_in_the_queue_of_the_service(page_service, browser):
    before = page_service.queue.documents
    assert browser.get("/?text=a+dog&kb=facts").status_code == 200
    assert page_service.queue.documents == before + 1


def test_requests_at_once_get_their_own_links(page_service, browser):
    linker = page_service.served("facts").linker(explain=True)
    texts = ["a dog", "the cat and the mouse", "nothing", "paw"]

    async def link_all():
        return await asyncio.gather(
            *(page_service.queue.link((linker,), [Document(text, text)]) for text in texts)
        )

    answers = asyncio.run(link_all())
    assert [document.text for [document] in answers] == texts
    assert [len(document.links) for [document] in answers] == [1, 2, 0, 1]


def test_corrections_come_with_a_text_and_bad_ones_are_a_problem(read):
    def page(corrections, status=200):
        return read(
            address("/", text="a dog, a cat", kb="facts", document="a/1", corrections=corrections), status
        )

    rows = [{"text": "dog", "entity": "cat", "document": "1"}, {"text": "cat", "entity": None}]
    marks = [mark for mark in page(json.dumps(rows)).named("a") if "data-entity" in mark]
    assert [(mark["data-text"], mark["data-entity"]) for mark in marks] == [("dog", "cat")]
    assert "Q999" in page(json.dumps([{"text": "dog", "entity": "Q999"}]), 422).words
    for bad in "[", "{}", '[{"text": "dog"}]':
        assert "corrections" in page(bad, 422).words
