"""Texts of the page, linked by linkers that explain their scores."""

import asyncio

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
