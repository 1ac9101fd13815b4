"""All of WordNet and of HowNet out and in again; `python -m benchmarks --only g` has the figures."""

import pytest

import kgkit
from kgkit.building.build import build_kb
from kgkit.building.records import StoredRecords
from kgkit.exchange import FORMATS
from kgkit.kb import differences
from tests.exchange_helpers import returned

pytestmark = pytest.mark.slow


@pytest.fixture
def wordnet(wordnet_build):
    with kgkit.open_kb("wordnet", home=wordnet_build.parents[3]) as kb:
        yield kb


@pytest.mark.parametrize("name", ["neo4j", "turtle"])
def test_wordnet_comes_back_equal(name, wordnet, tmp_path):
    with returned(wordnet, FORMATS[name], tmp_path) as again:
        assert list(differences(wordnet, again)) == []
        assert [entity.key for entity in again] == [entity.key for entity in wordnet]


@pytest.mark.parametrize("name", [name for name, made in FORMATS.items() if not made.losses])
def test_hownet_comes_back_equal(name, shared_data, tmp_path):
    build_kb("spo", shared_data / "hownet" / "HowNet.spo", name="hownet", home=tmp_path)
    with kgkit.open_kb("hownet", home=tmp_path) as kb, returned(kb, FORMATS[name], tmp_path) as again:
        assert list(differences(kb, again)) == []
        assert [entity.key for entity in again] == [entity.key for entity in kb]


def test_hownet_has_all_its_triples_in_three_columns(shared_data, tmp_path):
    source = shared_data / "hownet" / "HowNet.spo"
    build_kb("spo", source, name="hownet", home=tmp_path)
    with kgkit.open_kb("hownet", home=tmp_path) as kb, returned(kb, FORMATS["tsv"], tmp_path) as again:
        one, other = set(StoredRecords(kb).triples()), set(StoredRecords(again).triples())
        assert one == other and {entity.key for entity in kb} == {entity.key for entity in again}
        assert len(one) == kb.manifest.triples
