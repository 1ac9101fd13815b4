"""The application as a whole."""


def test_the_service_is_live_and_lists_its_knowledge_bases(client):
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/v1/kbs").status_code == 200


def test_an_address_that_is_not_there_is_a_problem(client):
    answer = client.get("/v1/nothing")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
