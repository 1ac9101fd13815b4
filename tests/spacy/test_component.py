"""The component `kgkit_linker` of a spaCy pipeline."""

import multiprocessing
import pickle
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.errors import DamagedModel, KgkitError, NotThere, UnknownName, UsageError
from tests.toys import build_toy

spacy = pytest.importorskip("spacy")
from spacy.tokens import Doc, Span, SpanGroup  # noqa: E402

from kgkit.spacy.component import (  # noqa: E402
    ATTRIBUTES,
    LinkerComponent,
    displacy_data,
    link_of,
)

ROOT = Path(__file__).parents[2]
TEXT = "In New York the apple of +Apple costs more than in York."
TEXTS = [TEXT, "", "No name.", "  The Big Apple\n\n and 苹果 ", "APPLE, apple; Apple: @apple"] * 3


@pytest.fixture
def home(toy_home, monkeypatch):
    """The home of the toy, as the one that pipelines look into."""
    monkeypatch.setenv("KGKIT_HOME", str(toy_home))
    return toy_home


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """A home with a toy in it that may be changed."""
    build_toy(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def pipeline(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("kgkit_linker", config={"kb": "toy", **config})
    return nlp


def with_ents(doc, *bounds):
    doc.ents = [Span(doc, start, end, "NAME") for start, end in bounds]
    return doc


def summary(doc, key="kgkit"):
    return [(span.text, span.kb_id_) for span in doc.spans[key]]


def comparable(links):
    """What a document keeps of links: of candidates neither labels nor senses."""
    return [
        (
            link.start, link.end, link.text, link.kb, link.entity, link.sense, link.label, link.score,
            [(row.entity, row.prior, row.score) for row in link.candidates],
        )
        for link in links
    ]  # fmt: skip


# -- links ------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 4, 1000])
def test_its_links_are_those_of_a_linker(home, batch_size):
    docs = list(pipeline(top_k=3).pipe(TEXTS, batch_size=batch_size))
    with kgkit.Linker.open("toy", home=home, top_k=3) as linker:
        expected = list(linker(TEXTS))
    assert [doc.text for doc in docs] == TEXTS
    for doc, linked in zip(docs, expected, strict=True):
        assert comparable(span._.kgkit for span in doc.spans["kgkit"]) == comparable(linked.links)
    assert sum(len(linked.links) for linked in expected) > 20


def test_a_document_has_scores_candidates_and_what_linked_it(home):
    attrs = pipeline()(TEXT).spans["kgkit"].attrs
    assert attrs["kb"] == f"toy@{kgkit.open_kb('toy').build}" and attrs["model"] == "prior"
    assert {len(attrs[name]) for name in ATTRIBUTES} == {4}
    entity, score, prior = attrs["candidates"][0][0]
    assert (entity, score) == ("New_York_City", attrs["scores"][0]) and score == prior


def test_a_link_that_begins_within_a_token_is_widened_and_keeps_its_offsets(home):
    doc = Doc(spacy.blank("en").vocab, words=["See", "+apple", "now"])
    [span] = pipeline().get_pipe("kgkit_linker")(doc).spans["kgkit"]
    assert (span.text, span.kb_id_) == ("+apple", "Apple")
    assert (span._.kgkit.start, span._.kgkit.end, span._.kgkit.text) == (5, 10, "apple")


def test_links_within_one_token_are_all_there_those_to_one_entity_too(home):
    doc = Doc(spacy.blank("en").vocab, words=["apple/York/apple/apple"])
    doc = pipeline().get_pipe("kgkit_linker")(doc)
    assert [span.kb_id_ for span in doc.spans["kgkit"]] == ["Apple", "York", "Apple", "Apple"]
    links = [span._.kgkit for span in doc.spans["kgkit"]]
    assert [(link.text, link.start) for link in links] == [
        ("apple", 0),
        ("York", 6),
        ("apple", 11),
        ("apple", 17),
    ]


def test_the_group_may_have_another_key_and_a_pipeline_several_components(home):
    nlp = pipeline(spans_key="first")
    nlp.add_pipe(
        "kgkit_linker", name="second", config={"kb": "toy", "spans_key": "second", "threshold": 0.95}
    )
    doc = nlp(TEXT)
    assert len(doc.spans["first"]) > len(doc.spans["second"]) > 0
    assert all(link_of(span) is not None for key in ("first", "second") for span in doc.spans[key])


def test_a_text_is_linked_as_it_was_whatever_spaces_it_has(home):
    texts = ["York York", "York  York", "YorkYork", "York\tYork\u3000York ", " York", "🍏York", ""]
    with kgkit.Linker.open("toy", home=home) as linker:
        expected = [comparable(linked.links) for linked in linker(texts)]
    docs = pipeline().pipe(texts)
    assert [comparable(span._.kgkit for span in doc.spans["kgkit"]) for doc in docs] == expected


# -- entities ---------------------------------------------------------------


def linked_with_ents(mentions, *bounds, text="York and New York and the Big Apple"):
    nlp = pipeline(mentions=mentions)
    return nlp.get_pipe("kgkit_linker")(with_ents(nlp.make_doc(text), *bounds))


def test_entities_of_the_document_are_linked_alone(home):
    doc = linked_with_ents("ents", (0, 1), (3, 4))
    assert summary(doc) == [("York", "York"), ("York", "York")]
    assert [(ent.text, ent.kb_id_, ent.label_) for ent in doc.ents] == [("York", "York", "NAME")] * 2


def test_surfaces_are_linked_whatever_entities_there_are(home):
    doc = linked_with_ents("surfaces", (0, 1), (3, 4))
    assert summary(doc) == [
        ("York", "York"),
        ("New York", "New_York_City"),
        ("the Big Apple", "New_York_City"),
    ]
    assert [ent.kb_id_ for ent in doc.ents] == ["York", ""], "the second is no more than a part of a link"


def test_both_links_entities_and_the_surfaces_beside_them(home):
    doc = linked_with_ents("both", (1, 2), (3, 4))
    assert summary(doc) == [("York", "York"), ("York", "York"), ("the Big Apple", "New_York_City")]
    assert [ent.kb_id_ for ent in doc.ents] == ["", "York"], "'and' means nothing in the knowledge base"


def test_an_entity_keeps_what_another_component_linked_it_to_unless_it_is_linked(home):
    nlp = pipeline()
    doc = nlp.make_doc("Rome and York")
    doc.ents = [Span(doc, 0, 1, "NAME", kb_id="Q220"), Span(doc, 2, 3, "NAME", kb_id="Q42462")]
    nlp.get_pipe("kgkit_linker")(doc)
    assert [ent.kb_id_ for ent in doc.ents] == ["Q220", "York"]
    assert link_of(doc.ents[0]) is None and link_of(doc.ents[1]).entity == "York"


# -- settings ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mentions": "found"}, "no value of mentions named 'found'; there are: ents, surfaces, both"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"top_k": -1}, "top_k is -1"),
        ({"spans_key": ""}, "spans_key is empty"),
    ],
)
def test_a_setting_out_of_range_is_refused_where_the_component_is_added(home, config, message):
    with pytest.raises(UsageError, match=message):
        pipeline(**config)


def test_all_that_is_missing_is_named_in_one_error(home):
    with pytest.raises(NotThere) as error:
        pipeline(kb="nope", model="no-model")
    assert "the component 'kgkit_linker' needs the knowledge base nope and the model no-model" in str(
        error.value
    )
    assert "no knowledge base 'nope'" in str(error.value) and "'no-model'" in str(error.value)
    with pytest.raises(NotThere, match="has no vectors 'no-vectors'"):
        pipeline(vectors="no-vectors")
    with pytest.raises(UnknownName):
        pipeline(mentions="names")


# -- saved pipelines --------------------------------------------------------


def test_a_pipeline_comes_back_from_the_disk_from_bytes_and_from_a_pickle(home, tmp_path):
    nlp = pipeline(threshold=0.5, spans_key="links")
    nlp.to_disk(tmp_path / "pipeline")
    other = pipeline(threshold=0.5, spans_key="links").from_bytes(nlp.to_bytes())
    for again in (spacy.load(tmp_path / "pipeline"), other, pickle.loads(pickle.dumps(nlp))):
        component, original = again.get_pipe("kgkit_linker"), nlp.get_pipe("kgkit_linker")
        assert (component.record, component.settings) == (original.record, original.settings)
        assert summary(again(TEXT), "links") == summary(nlp(TEXT), "links")


def test_a_saved_pipeline_keeps_its_build_when_another_is_published(own_home, tmp_path):
    nlp = pipeline()
    nlp.to_disk(tmp_path / "pipeline")
    pickled, data = pickle.dumps(nlp.get_pipe("kgkit_linker")), nlp.to_bytes()
    before = nlp.get_pipe("kgkit_linker").kb
    build_toy(tmp_path, links=[Alias("apple", "Fig")], pages=[Entity("Fig")])
    new = pipeline()
    assert new.get_pipe("kgkit_linker").kb != before
    assert spacy.load(tmp_path / "pipeline").get_pipe("kgkit_linker").kb == before
    assert pickle.loads(pickled).kb == before
    assert new.from_bytes(data).get_pipe("kgkit_linker").kb == before
    assert summary(new("apple")) == [("apple", "Apple")]


def test_what_is_overridden_where_a_pipeline_is_loaded_goes_before_what_was_saved(own_home, tmp_path):
    pipeline().to_disk(tmp_path / "pipeline")
    build_toy(tmp_path, name="figs", links=[Alias("apple", "Fig")], pages=[Entity("Fig")])
    config = {"components.kgkit_linker.kb": "figs", "components.kgkit_linker.top_k": 1}
    nlp = spacy.load(tmp_path / "pipeline", config=config)
    assert (
        nlp.get_pipe("kgkit_linker").kb.startswith("figs@")
        and nlp.get_pipe("kgkit_linker").settings.top_k == 1
    )


def test_loaded_where_the_build_is_missing_a_pipeline_names_it_and_the_model(home, tmp_path, monkeypatch):
    nlp = pipeline()
    build = nlp.get_pipe("kgkit_linker").kb
    nlp.meta["kgkit"]["kgkit_linker"]["model"] = "my-model"
    nlp.to_disk(tmp_path / "pipeline")
    path = tmp_path / "pipeline" / "config.cfg"
    path.write_text(path.read_text().replace('model = "auto"', 'model = "my-model"'))
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "empty"))
    with pytest.raises(NotThere) as error:
        spacy.load(tmp_path / "pipeline")
    assert f"needs the knowledge base {build} and the model my-model" in str(error.value)


def test_loaded_where_the_default_is_another_a_pipeline_finds_its_own(own_home, tmp_path):
    nlp = pipeline(kb=None)
    nlp.to_disk(tmp_path / "pipeline")
    build_toy(tmp_path, name="other")
    assert spacy.load(tmp_path / "pipeline").get_pipe("kgkit_linker").kb == nlp.get_pipe("kgkit_linker").kb


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"kb": 1}', '{"configured": null, "kb": "x", "run": "y"}', "\xff"]
)
def test_a_record_that_is_none_is_one_clear_error(home, tmp_path, content):
    pipeline().to_disk(tmp_path / "pipeline")
    [path] = (tmp_path / "pipeline" / "kgkit_linker").iterdir()
    path.write_text(content, encoding="latin-1")
    with pytest.raises(DamagedModel, match=r"kgkit\.json is no record of a knowledge base"):
        spacy.load(tmp_path / "pipeline")
    path.unlink()
    with pytest.raises(DamagedModel, match="cannot be read"):
        spacy.load(tmp_path / "pipeline")


def test_spacy_assembles_a_pipeline_from_its_configuration(home, tmp_path):
    from spacy.cli.assemble import assemble_cli

    config = '[nlp]\nlang = "en"\npipeline = ["linker"]\n[components]\n[components.linker]\n'
    config += 'factory = "kgkit_linker"\nkb = "toy"\n'
    (tmp_path / "config.cfg").write_text(config)

    class Context:
        args = ()

    assemble_cli(Context(), tmp_path / "config.cfg", tmp_path / "out", None, False)
    assert summary(spacy.load(tmp_path / "out")("York")) == [("York", "York")]


def test_links_are_saved_with_a_document_and_its_bytes_do_not_double(home):
    nlp = pipeline()
    doc = nlp(TEXT)
    data = doc.to_bytes()
    again = Doc(nlp.vocab).from_bytes(data)
    assert [span._.kgkit for span in again.spans["kgkit"]] == [span._.kgkit for span in doc.spans["kgkit"]]
    assert not doc.user_data, "an extension that has a value is saved with each span"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_give_what_one_does(home, monkeypatch, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this platform")
    import spacy.language

    monkeypatch.setattr(spacy.language, "mp", multiprocessing.get_context(method))
    nlp = pipeline()
    runs = [list(nlp.pipe(TEXTS, n_process=count, batch_size=4)) for count in (1, 2)]
    links = [[comparable(link_of(span) for span in doc.spans["kgkit"]) for doc in docs] for docs in runs]
    assert links[0] == links[1] and any(links[0])


def test_a_document_that_cannot_be_linked_goes_to_the_handler_of_errors(home):
    nlp = pipeline()
    nlp.get_pipe("kgkit_linker").linker.close()
    with pytest.raises(KgkitError):
        list(nlp.pipe(["apple"]))
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.append((name, len(docs))))
    assert list(nlp.pipe(["apple", "York"])) == [] and failed == [("kgkit_linker", 2)]


def test_strings_of_a_memory_zone_are_added_again_in_the_next(home):
    nlp = pipeline()
    for _ in range(2):
        with nlp.memory_zone():
            assert summary(nlp("York")) == [("York", "York")]


def test_closed_a_component_opens_its_build_again(home):
    component = LinkerComponent(kb="toy")
    vocab = spacy.blank("en").vocab
    component.close()
    for _ in range(2):
        assert summary(component(Doc(vocab, words=["York"]))) == [("York", "York")]
        component.close()


# -- displaCy ---------------------------------------------------------------


def test_displacy_draws_links_with_their_addresses(home):
    doc = pipeline()(TEXT)
    data = displacy_data(doc, url="https://example.org/{}?a=1&b=2")
    assert [row["kb_id"] for row in data["ents"]] == [span.kb_id_ for span in doc.spans["kgkit"]]
    for style in ("ent", "span"):
        page = spacy.displacy.render(data, style=style, manual=True, jupyter=False)
        assert 'href="https://example.org/New_York_City?a=1&amp;b=2"' in page


def a_group(**attrs):
    """A document with a link whose group has further attributes, as if it were read from a file."""
    doc = Doc(spacy.blank("en").vocab, words=["York", "Bern"])
    spans = [Span(doc, 0, 1, "kb", kb_id="new york"), Span(doc, 1, 2, "kb", kb_id="b")]
    lists = {
        "scores": [1.0, 1.0],
        "candidates": [[], []],
        "labels": ["New York", ".."],
        "senses": [None, None],
    }
    doc.spans["kgkit"] = SpanGroup(doc, name="kgkit", attrs={**lists, "widened": [], **attrs}, spans=spans)
    return doc


@pytest.mark.parametrize(
    ("attrs", "urls"),
    [
        (
            {"url_pattern": "https://example.org/{key:_}"},
            ["https://example.org/new_york", "https://example.org/b"],
        ),
        ({"url_pattern": "https://example.org/{label}"}, ["https://example.org/New%20York", "#"]),
        ({"urls": ["https://example.org/?a=1&b=2", ""]}, ["https://example.org/?a=1&amp;b=2", "#"]),
        ({"urls": ["javascript:alert(1)", 7]}, ["#", "#"]),
        ({"url_pattern": "javascript:{key}"}, ["#", "#"]),
        ({"url_pattern": 3}, ["#", "#"]),
        ({"urls": ["https://example.org/"]}, ["#", "#"]),
        ({}, ["#", "#"]),
    ],
)
def test_displacy_draws_the_addresses_that_a_document_keeps_and_no_others(attrs, urls):
    doc = a_group(**attrs)
    assert [row["kb_url"] for row in displacy_data(doc)["spans"]] == urls
    links = [link_of(span) for span in doc.spans["kgkit"]]
    assert [link.url.replace("&", "&amp;") or "#" for link in links] == urls


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [("https://example.org/{key}", "url_pattern"), ("https://example.org/{page}", "urls"), ("", None)],
)
def test_a_document_keeps_a_pattern_or_what_no_pattern_can_make(tmp_path, monkeypatch, pattern, kept):
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path))
    records = [{"key": "y", "label": "York", "attributes": {"page": 7}}, {"key": "b", "label": "Bern"}]
    kgkit.build_kb("jsonl", records, name="towns", url_pattern=pattern)
    nlp = spacy.blank("en")
    nlp.add_pipe("kgkit_linker", config={"kb": "towns"})
    doc = nlp("York and Bern")
    attrs = doc.spans["kgkit"].attrs
    assert {name for name in ("url_pattern", "urls") if name in attrs} == ({kept} if kept else set())
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    linked = kgkit.link("York and Bern", kb="towns", model="prior")
    assert [link_of(span).url for span in again.spans["kgkit"]] == [link.url for link in linked.links]


def test_keys_are_escaped_for_displacy_and_overlapping_links_drawn_once(home):
    doc = Doc(spacy.blank("en").vocab, words=["a", "b"])
    doc.spans["kgkit"] = [Span(doc, 0, 2, kb_id='<b>"/é'), Span(doc, 1, 2, kb_id="b")]
    data = displacy_data(doc, url="u/{}")
    assert (data["ents"][0]["kb_id"], data["ents"][0]["kb_url"]) == (
        "&lt;b&gt;&quot;/é",
        "u/%3Cb%3E%22%2F%C3%A9",
    )
    assert (len(data["ents"]), len(data["spans"]), displacy_data(doc)["spans"][1]["kb_url"]) == (1, 2, "#")


def test_displacy_data_of_what_is_not_there_is_refused(home):
    doc = pipeline()(TEXT)
    with pytest.raises(NotThere, match="no spans 'links'; there are: kgkit"):
        displacy_data(doc, "links")
    with pytest.raises(UsageError, match=r"needs '\{\}'"):
        displacy_data(doc, url="https://example.org")


# -- how spaCy finds it -----------------------------------------------------


def test_the_entry_points_name_what_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group, name in (("spacy_factories", "kgkit_linker"), ("spacy_misc", "kgkit.KnowledgeBase.v1")):
        module, _, function = project["entry-points"][group][name].partition(":")
        assert callable(getattr(import_module(module), function))


def test_auto_is_a_model_that_is_chosen_where_the_pipeline_is_used(home, tmp_path, monkeypatch):
    monkeypatch.setenv("KGKIT_MODEL", "prior")
    nlp = pipeline(model="auto")
    assert nlp(TEXT).spans["kgkit"].attrs["model"] == "prior"
    assert summary(nlp(TEXT)) == summary(pipeline(model="prior")(TEXT))
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline").get_pipe("kgkit_linker").settings.model == "auto"
    monkeypatch.setenv("KGKIT_MODEL", "no-model")
    with pytest.raises(NotThere, match="the model no-model"):
        pipeline(model="auto")
    monkeypatch.delenv("KGKIT_MODEL")
    assert pipeline(model="auto").get_pipe("kgkit_linker").settings.model == "auto"
