"""Statements gathered into entities, beside a slow twin that holds the whole file in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building import Alias, Entity, Redirect, Triple
from kgkit.exchange.gathering import EntityField, gather_parts

KEYS = st.sampled_from(["a", "b", "c", "d"])
LANGUAGES = st.sampled_from(["", "en", "EN-gb", "de", "zh", "eng"])
TEXTS = st.sampled_from(["x", "y", ""])
FIELDS = st.one_of(
    st.builds(EntityField, KEYS, st.sampled_from(["label", "description"]), st.tuples(TEXTS, LANGUAGES)),
    st.builds(EntityField, KEYS, st.just("types"), TEXTS),
    st.builds(EntityField, KEYS, st.sampled_from(["kind", "pos"]), TEXTS),
    st.builds(EntityField, KEYS, st.just("literal"), st.tuples(st.sampled_from("pq"), st.integers(0, 3))),
)
RECORDS = st.one_of(
    FIELDS,
    st.builds(Triple, KEYS, st.just("r"), KEYS),
    st.builds(Alias, st.just("surface"), KEYS),
    st.builds(Redirect, st.sampled_from(["d", "e"]), KEYS),
)


def gathered(items, *, grouped=False, named=None):
    return [*gather_parts(lambda: iter(items), grouped=grouped, named=named)]


def entities(records):
    return [record for record in records if isinstance(record, Entity)]


def text_of(fields, field):
    """Return the text of the best language: none said, English, any other; of equals the first."""
    texts = [value for name, value in fields if name == field]
    english = [text for text, language in texts if language.lower() in ("en", "en-gb")]
    return next(
        iter([text for text, language in texts if not language] + english + [t for t, _ in texts]), ""
    )


def entity_by_definition(key, items):
    fields = [(item.field, item.value) for item in items if isinstance(item, EntityField) and item.key == key]
    attributes = {}
    for name in dict.fromkeys(value[0] for field, value in fields if field == "literal"):
        values = [value[1] for field, value in fields if field == "literal" and value[0] == name]
        attributes[name] = values[0] if len(values) == 1 else values
    plain = dict(field for field in fields if field[0] in ("kind", "pos"))
    return Entity(
        key, text_of(fields, "label"), text_of(fields, "description"), plain.get("kind", ""),
        plain.get("pos", ""), tuple(value for field, value in fields if field == "types"), attributes,
    )  # fmt: skip


def keys_by_definition(items):
    """Return the keys that something is said of, and those that are named and are not other keys."""
    described = {item.key for item in items if isinstance(item, EntityField)}
    others = {item.source for item in items if isinstance(item, Redirect)}
    ends = {key for item in items if isinstance(item, Triple) for key in (item.subject, item.object)}
    ends |= {item.key for item in items if isinstance(item, Alias)}
    return described | (ends - others)


@given(st.lists(RECORDS, max_size=14))
def test_entities_of_a_file_in_any_order_are_those_of_the_definition(items):
    records = gathered(items)
    found = entities(records)
    assert {entity.key for entity in found} == keys_by_definition(items)
    assert len({entity.key for entity in found}) == len(found)  # each is there once
    for entity in found:
        assert entity == entity_by_definition(entity.key, items)
    others = [item for item in items if not isinstance(item, EntityField)]
    assert [record for record in records if not isinstance(record, Entity)] == others  # in their order


@given(
    st.lists(st.tuples(KEYS, st.lists(FIELDS, min_size=1, max_size=4)), max_size=4, unique_by=lambda x: x[0])
)
def test_a_file_whose_entities_stand_together_is_read_once_to_the_same_end(groups):
    items = [field._replace(key=key) for key, fields in groups for field in fields]
    readings = []

    def read():
        readings.append(len(readings))
        return iter(items)

    assert [*gather_parts(read, grouped=True)] == gathered(items)
    assert readings == [0]
    assert [entity.key for entity in entities(gathered(items))] == [key for key, _ in groups]


@pytest.mark.parametrize(
    ("languages", "best"),
    [
        (["de", "en"], "en"), (["en", ""], ""), (["de", "zh"], "de"), (["en-GB", "en"], "en-GB"),
        (["", "en"], ""), (["eng", "en"], "en"), (["de"], "de"),
    ],
)  # fmt: skip
def test_of_several_languages_none_goes_before_english_and_english_before_others(languages, best):
    items = [EntityField("a", "label", (f"text {language}", language)) for language in languages]
    assert gathered(items) == [Entity("a", f"text {best}")]


def test_one_value_is_itself_and_several_are_a_list_even_of_lists():
    items = [EntityField("a", "literal", ("size", [1])), EntityField("a", "literal", ("name", "x"))]
    assert gathered(items)[0].attributes == {"size": [1], "name": "x"}
    assert gathered([*items, EntityField("a", "literal", ("size", [2]))])[0].attributes == {
        "size": [[1], [2]], "name": "x",
    }  # fmt: skip


def test_a_label_that_lacks_is_made_and_is_an_alias_too_unless_there_is_none_to_make():
    items = [EntityField("a", "label", ("A", "")), EntityField("b", "kind", "k"), Triple("a", "r", "c")]
    records = gathered(items, named=lambda key: f"the {key}" if key != "c" else "")
    assert Alias("the b", "b") in records and Entity("b", "the b", kind="k") in records
    assert records.index(Alias("the b", "b")) < records.index(Entity("b", "the b", kind="k"))
    assert Entity("a", "A") in records and Entity("c") in records
    assert sum(isinstance(record, Alias) for record in records) == 1
