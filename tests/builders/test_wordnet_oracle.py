"""All of WordNet as kgkit has it, beside what nltk's reader makes of the same files.

Every test runs on the small WordNet of `mini_wordnet` and on the real one, which `conftest` obtains.
"""

import io
import re
import shutil
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import astuple

import kgkit
from kb_builders.wordnet import LEXICOGRAPHER_FILES, WordNetBuilder
from kb_builders.wordnet_source import FILES
from kgkit.types import Entity
from tests.mini_wordnet import mini_wordnet

QUOTATION = re.compile('"[^"]*"')
REMAINS = re.compile(r"[;:,]\s*$|;\s*;|;\s*-")
PART_NUMBERS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}

# Our relation -> nltk's method; nltk has none for participles and is asked for the symbol.
METHODS = {
    "antonym": "antonyms",
    "hypernym": "hypernyms",
    "hyponym": "hyponyms",
    "instance_hypernym": "instance_hypernyms",
    "instance_hyponym": "instance_hyponyms",
    "member_holonym": "member_holonyms",
    "substance_holonym": "substance_holonyms",
    "part_holonym": "part_holonyms",
    "member_meronym": "member_meronyms",
    "substance_meronym": "substance_meronyms",
    "part_meronym": "part_meronyms",
    "attribute": "attributes",
    "derivation": "derivationally_related_forms",
    "domain_topic": "topic_domains",
    "has_domain_topic": "in_topic_domains",
    "domain_region": "region_domains",
    "has_domain_region": "in_region_domains",
    "domain_usage": "usage_domains",
    "has_domain_usage": "in_usage_domains",
    "entailment": "entailments",
    "cause": "causes",
    "also_see": "also_sees",
    "verb_group": "verb_groups",
    "similar_to": "similar_tos",
    "pertainym": "pertainyms",
    "participle": "<",
}
# The relations of WordNet 3.0 with their directed pairs: between synsets, between lemma senses.
PAIRS_OF_3_0 = {
    "antonym": (0, 7979),
    "hypernym": (89089, 0),
    "hyponym": (89089, 0),
    "instance_hypernym": (8577, 0),
    "instance_hyponym": (8577, 0),
    "member_holonym": (12293, 0),
    "substance_holonym": (797, 0),
    "part_holonym": (9097, 0),
    "member_meronym": (12293, 0),
    "substance_meronym": (797, 0),
    "part_meronym": (9097, 0),
    "attribute": (1278, 0),
    "derivation": (0, 74708),
    "domain_topic": (6643, 11),
    "has_domain_topic": (6643, 11),
    "domain_region": (1345, 15),
    "has_domain_region": (1345, 15),
    "domain_usage": (967, 409),
    "has_domain_usage": (967, 409),
    "entailment": (408, 0),
    "cause": (220, 0),
    "also_see": (2692, 580),
    "verb_group": (1748, 2),
    "similar_to": (21386, 0),
    "participle": (0, 73),
    "pertainym": (0, 8022),
}
# Of the two directions of a relation that are answered both, and of a symmetric one, this is stored.
STORED_OF_3_0 = {
    "antonym": 7979, "hypernym": 89089, "instance_hypernym": 8577, "member_holonym": 12293,
    "substance_holonym": 797, "part_holonym": 9097, "attribute": 639, "derivation": 74708,
    "domain_topic": 6654, "domain_region": 1360, "domain_usage": 1376, "entailment": 408, "cause": 220,
    "also_see": 3272, "verb_group": 875, "similar_to": 10693, "participle": 73, "pertainym": 8022,
    "lemma_in_synset": 206949,
}  # fmt: skip

SURFACES_WRITTEN_TWICE = {
    "on the qt", "pa system", "st joseph", "us army criminal investigation laboratory", "us congress",
    "us constitution", "us government", "us house", "us house of representatives", "us mint", "us senate",
}  # fmt: skip

Pairs = set[tuple[str, str]]


class Both(NamedTuple):
    """One WordNet, read twice.

    Attributes:
        entities: all of the KB, in id order.
        keys: (part of speech, offset) of every synset of nltk's -> our key.
    """

    folder: Path
    kb: kgkit.KnowledgeBase
    entities: list[Entity]
    nltk: Any
    synsets: list
    keys: dict[tuple[str, int], str]


def nltk_reader(source: Path, folder: Path):
    """Open *source* with nltk, through a copy in *folder*, as it wants a file that Debian does not ship."""
    nltk = pytest.importorskip("nltk")
    from nltk.corpus.reader import WordNetCorpusReader

    # It would map other versions to 3.0, for which it needs files that nobody ships.
    reader_type = type("Reader", (WordNetCorpusReader,), {"map_wn": lambda self: None})
    for file in FILES:
        shutil.copyfile(source / file, folder / file)
    lexnames = (
        f"{number:02d}\t{name}\t{PART_NUMBERS[name.split('.')[0]]}\n"
        for number, name in enumerate(LEXICOGRAPHER_FILES)
    )
    (folder / "lexnames").write_text("".join(lexnames))
    nltk.data.path.append(str(folder))  # it reads from nowhere else
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there is no multilingual data
            reader = reader_type(str(folder), None)
        synsets = list(reader.all_synsets())
    finally:
        nltk.data.path.remove(str(folder))
    # It reads counts by binary search, and from memory in a tenth of the time.
    reader._key_count_file = InMemory((folder / "cntlist.rev").read_text())
    return reader, synsets


class InMemory(io.StringIO):
    discard_line = io.StringIO.readline  # as the files that nltk opens have it


ALL = pytest.param("all", marks=pytest.mark.slow)  # of WordNet: half a minute before the first test


@pytest.fixture(scope="module", params=["mini", ALL])
def both(request, tmp_path_factory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp(request.param)
    source = (
        mini_wordnet(folder / "source")
        if request.param == "mini"
        else request.getfixturevalue("wordnet_files")
    )
    home = folder / "home"
    kgkit.build_kb(WordNetBuilder(), source, home=home)
    (folder / "nltk").mkdir()
    reader, synsets = nltk_reader(source, folder / "nltk")
    with kgkit.open_kb("wordnet", home=home) as kb:
        yield Both(source, kb, list(kb), reader, synsets, {id_of(s): key_of(s, reader) for s in synsets})


def id_of(synset) -> tuple[str, int]:
    return part_of(synset), synset.offset()


def part_of(synset) -> str:
    """Return the part of speech under which the files list a synset: `a` for satellites too."""
    return "a" if synset.pos() == "s" else synset.pos()


def key_of(synset, reader) -> str:
    """Return the name under which people know a synset.

    It is nltk's `name()`, but that some versions of nltk number satellites by themselves (3.10 does).
    """
    first = synset.lemmas()[0].name().lower()
    senses = reader._lemma_pos_offset_map[first][part_of(synset)]
    return f"{first}.{synset.pos()}.{senses.index(synset.offset()) + 1:02d}"


def first_lemmas(both: Both) -> dict[str, object]:
    """Return nltk's lemmas by sense key; of those that share one, the first."""
    found: dict[str, object] = {}
    for synset in both.synsets:
        for lemma in synset.lemmas():
            found.setdefault(lemma.key(), lemma)
    return found


def marked_counts(both: Both) -> dict[str, int]:
    """Return what cntlist.rev counts under keys with a syntactic marker: such a key without it -> count."""
    found = {}
    for line in (both.folder / "cntlist.rev").read_text().splitlines():
        key, _, count = line.split()
        if "(" in key:
            before, _, marked = key.partition("(")
            found[before + marked.partition(")")[2]] = int(count)
    return found


@pytest.fixture(scope="module")
def pairs(both: Both) -> dict[tuple[str, str], Pairs]:
    """All that nltk's synsets and lemmas say: (relation, kind of entity) -> pairs of keys."""
    pairs: dict[tuple[str, str], Pairs] = defaultdict(set)
    for relation, method in METHODS.items():
        for synset in both.synsets:
            for target in related(synset, method):
                pairs[relation, "synset"].add((both.keys[id_of(synset)], both.keys[id_of(target)]))
            for lemma in synset.lemmas() if synset._lemma_pointers else ():
                for target in related(lemma, method):
                    pairs[relation, "lemma"].add((lemma.key(), target.key()))
    for synset in both.synsets:
        key = both.keys[id_of(synset)]
        pairs["lemma_in_synset", "lemma"].update((lemma.key(), key) for lemma in synset.lemmas())
    return pairs


def related(node, method: str) -> list:
    if method == "<":
        return node._related("<")
    # Synsets lack the methods of what WordNet says of words only.
    return getattr(node, method)() if hasattr(node, method) else []


def surfaces_by_name(both: Both) -> dict[str, str]:
    """Return the surface of each of nltk's names of lemmas: `us congress` of `u.s._congress`."""
    fold = both.kb.store.folding.fold
    offsets = both.nltk._lemma_pos_offset_map
    return {name: fold(name.replace("_", " ")) for name in both.nltk.all_lemma_names() if offsets[name]}


# --- entities --------------------------------------------------------------


def test_synsets_are_those_of_nltk_under_their_known_names(both):
    ours = [entity.key for entity in both.entities if entity.kind == "synset"]
    assert len(ours) == len(both.synsets)
    assert set(ours) == set(both.keys.values())
    names = {both.keys[id_of(synset)]: synset.name() for synset in both.synsets}
    assert {key[-4] for key, name in names.items() if key != name} <= {"s"}


def test_lemma_senses_are_those_of_nltk(both):
    ours = [entity.key for entity in both.entities if entity.kind == "lemma"]
    assert sorted(ours) == sorted({lemma.key() for synset in both.synsets for lemma in synset.lemmas()})


def test_ids_of_synsets_are_a_range_of_their_own(both):
    kinds = [entity.kind for entity in both.entities]
    assert kinds == ["synset"] * len(both.synsets) + ["lemma"] * (len(kinds) - len(both.synsets))


def test_definitions_begin_as_nltks_and_files_words_and_frames_equal_those(both):
    for synset in both.synsets:
        entity = both.kb[both.keys[id_of(synset)]]
        attributes = entity.attributes
        # nltk leaves authors, separators and half quotations in the definition.
        before = QUOTATION.sub("", entity.description).rstrip()
        definition, examples = synset.definition(), [entity.description, *attributes.get("examples", [])]
        assert definition.startswith(before), entity.key
        assert '"' in definition or synset.examples() or definition.rstrip(" ;:,") == before, entity.key
        assert all(example.strip(" ;:") in "\n".join(examples) for example in synset.examples()), entity.key
        assert (
            attributes["lexfile"],
            attributes["lemmas"],
            attributes.get("frames", []),
            entity.label,
            entity.pos,
        ) == (
            synset.lexname(),
            [name.replace("_", " ") for name in synset.lemma_names()],
            synset.frame_ids(),
            synset.lemma_names()[0].replace("_", " "),
            synset.pos(),
        ), entity.key


def test_no_definition_has_remains_of_its_examples(both):
    definitions = [entity.description for entity in both.entities]
    assert not [text for text in definitions if REMAINS.search(text) or text.count('"') % 2]


def test_labels_markers_and_frames_of_lemma_senses_equal_nltks(both):
    for key, lemma in first_lemmas(both).items():
        entity = both.kb[key]
        own = Counter(lemma.frame_ids()) - Counter(lemma.synset().frame_ids())
        marker = entity.attributes.get("marker")
        assert (
            entity.label,
            entity.pos,
            None if marker is None else f"({marker})",
            Counter(entity.attributes.get("frames", [])),
        ) == (lemma.name().replace("_", " "), lemma.synset().pos(), lemma.syntactic_marker(), own), key


def test_counts_equal_nltks_but_for_senses_whose_key_has_a_marker(both):
    """The list of counts writes some heads with their marker; nltk seeks the key without it, in vain."""
    theirs = {key: lemma.count() for key, lemma in first_lemmas(both).items()}
    ours = {entity.key: entity.attributes["count"] for entity in both.entities if entity.kind == "lemma"}
    marked = marked_counts(both)
    differ = {key for key in theirs if ours[key] != theirs[key]}
    assert differ == {key for key in marked if key in ours}
    assert {ours[key] - marked[key] for key in differ} == {theirs[key] for key in differ} == {0}


def test_ranks_are_nltks_order_of_senses(both):
    for (part, offset), key in both.keys.items():
        synset = both.nltk.synset_from_pos_and_offset(part, offset)
        for lemma in synset.lemmas():
            senses = both.nltk._lemma_pos_offset_map[lemma.name().lower()][part]
            assert both.kb[lemma.key()].attributes["rank"] == senses.index(offset) + 1, (key, lemma.key())


# --- surfaces --------------------------------------------------------------


def test_surfaces_are_nltks_lemmas_but_for_full_stops(both):
    surfaces = surfaces_by_name(both)
    assert list(both.kb.surfaces()) == sorted({*surfaces.values()})
    for name, surface in surfaces.items():
        spelled = name.replace("_", " ")
        assert surface == spelled or surface.replace(".", "") == spelled.replace(".", ""), name


def test_priors_are_smoothed_counts_and_ties_stay_in_the_order_of_senses(both):
    """Of each surface and part of speech: the synsets of nltk, best count first, then by sense number."""
    surfaces = surfaces_by_name(both)
    counts: Counter[tuple[str, str]] = Counter()
    for key, lemma in first_lemmas(both).items():
        surface = surfaces[lemma.name().lower()]
        counts[surface, both.keys[id_of(lemma.synset())]] += both.kb[key].attributes["count"]
    senses_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, parts in both.nltk._lemma_pos_offset_map.items():
        for part in (part for part in "nvar" if parts.get(part)):
            senses_of[surfaces[name], part] += [both.keys[part, offset] for offset in parts[part]]
    disordered = 0
    for (surface, part), repeated in senses_of.items():
        senses = list(dict.fromkeys(repeated))
        weights = {key: counts[surface, key] + 1 for key in senses}
        expected = sorted(senses, key=weights.__getitem__, reverse=True)
        found = both.kb.candidates(surface, pos=part, prefer_case=False)
        assert [both.entities[number].key for number in found.ids.tolist()] == expected, surface
        wanted = [weights[key] / sum(weights.values()) for key in expected]
        assert found.priors.tolist() == pytest.approx(wanted, abs=1e-6), surface
        disordered += expected != senses
    # In WordNet 3.0 no sense was counted more than one before it; in the mini WordNet one of `dog` was.
    assert (len(senses_of), disordered) == ((155_276, 0) if len(both.synsets) == 117_659 else (47, 1))


def test_irregular_forms_equal_nltks_lists_but_for_forms_that_have_two_lines(both):
    """Of a form that its list has twice, nltk keeps the last line; we keep both."""
    theirs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    twice = set()
    for part, name in {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}.items():
        for form, lemmas in both.nltk._exception_map[part].items():
            theirs[form].update((lemma.replace("_", " "), part) for lemma in lemmas)
        lines = [line.split()[0] for line in (both.folder / f"{name}.exc").read_text().splitlines()]
        twice |= {form for form, number in Counter(lines).items() if number > 1}
    ours = {form: set(map(tuple, both.kb.store.lemmas(form.replace("_", " ")))) for form in theirs}
    assert both.kb.manifest.counts.forms == len(theirs)
    assert [form for form in theirs if not ours[form] >= theirs[form]] == []
    assert {form for form in theirs if ours[form] != theirs[form]} <= twice


# --- relations -------------------------------------------------------------


def test_triples_are_nltks_pairs_each_fact_once(both, pairs):
    kinds = {entity.key: entity.kind for entity in both.entities}
    ours: dict[tuple[str, str], Pairs] = defaultdict(set)
    triples = list(both.kb.match())
    for subject, relation, object_ in map(astuple, triples):
        ours[relation, kinds[subject]].add((subject, object_))
        if relation in WordNetBuilder.inverses:
            ours[WordNetBuilder.inverses[relation], kinds[subject]].add((object_, subject))
    assert ours.keys() == pairs.keys()
    assert [which for which, theirs in pairs.items() if ours[which] != theirs] == []
    assert len(triples) == both.kb.manifest.triples == sum(both.kb.manifest.counts.relations.values())


@pytest.mark.parametrize("relation", ["hypernym", "hyponym", "has_domain_topic", "derivation"])
def test_a_relation_is_told_in_its_own_direction(both, pairs, relation):
    ours = [(triple.subject, triple.object) for triple in both.kb.match(relation=relation)]
    assert sorted(ours) == sorted(pairs[relation, "synset"] | pairs[relation, "lemma"])


def test_neighbors_are_nltks_pairs_from_either_end(both, pairs):
    ids = {entity.key: entity.id for entity in both.entities}
    outward: dict[int, list[int]] = defaultdict(list)
    for theirs in pairs.values():
        for subject, object_ in theirs:
            outward[ids[subject]].append(ids[object_])
    assert [
        number
        for number in range(len(both.entities))
        if sorted(both.kb.neighbors(number).tolist()) != sorted(outward[number])
    ] == []

    some = {entity.key for entity in both.entities[:: max(1, len(both.entities) // 500)]}
    by_relation: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (relation, _), theirs in pairs.items():
        for subject, object_ in theirs:
            if subject in some:
                by_relation[subject, relation, "out"].add(object_)
            if object_ in some:
                by_relation[object_, relation, "in"].add(subject)
    for key in some:
        for relation in both.kb.relations:
            for direction in ("out", "in"):
                found = {entity.key for entity in both.kb.neighbors(key, relation, direction)}
                assert found == by_relation[key, relation, direction], (key, relation, direction)


# --- where each number comes from ------------------------------------------


@pytest.mark.parametrize("both", [ALL], indirect=True)
def test_the_numbers_of_wordnet_3_0(both):
    words = [lemma for synset in both.synsets for lemma in synset.lemmas()]
    pairs = [(lemma.name().lower(), part_of(lemma.synset()), lemma.synset().offset()) for lemma in words]
    listed = [
        (name, part, offset)
        for name, parts in both.nltk._lemma_pos_offset_map.items()
        for part in "nvar"
        for offset in parts.get(part, [])
    ]
    assert len(words) == 206_978
    # 37 words are written in two ways in one synset (Earth, earth): the index lists them once …
    assert len(listed) == len(set(pairs)) == 206_941
    # … and for 8 of them each way has a key of its own (earth%1:17:00:: for Earth, earth%1:17:02::).
    assert len({lemma.key() for lemma in words}) == 206_949
    assert len({name for name, _, _ in listed}) == 147_306
    assert len({(name, part) for name, part, _ in listed}) == 155_287

    # Eleven are written with full stops and without, as one surface; only of st joseph in two synsets.
    manifest = both.kb.manifest
    written = Counter(surfaces_by_name(both).values())
    assert {surface for surface, ways in written.items() if ways > 1} == SURFACES_WRITTEN_TWICE
    assert max(written.values()) == 2
    assert manifest.counts.entities == {"synset": 117_659, "lemma": 206_949}
    assert (manifest.aliases, manifest.alias_rows) == (147_306 - 11, 206_941 - 10)


@pytest.mark.parametrize("both", [ALL], indirect=True)
def test_the_relations_of_wordnet_3_0(both, pairs):
    found = {
        relation: (len(pairs[relation, "synset"]), len(pairs[relation, "lemma"])) for relation in METHODS
    }
    assert found == PAIRS_OF_3_0
    assert sum(number > 0 for levels in PAIRS_OF_3_0.values() for number in levels) == 34
    assert both.kb.manifest.counts.relations == STORED_OF_3_0
    assert both.kb.manifest.triples == 443_081
    # 9 pointers are written twice, and baroque and Baroque, one sense, both say what they pertain to.
    assert both.kb.manifest.counts.dropped == {"triple written twice": 10}
