"""The lemma generator: morphology, function words and spans, beside a generator written for the eye."""

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kgkit.building import Alias, Entity, Form, Record, Triple
from kgkit.candidates import LemmaConfig, LemmaGenerator
from kgkit.candidates.hyphens import joining_hyphens
from kgkit.candidates.matching import is_case_informative
from kgkit.candidates.spelling import FUNCTION_WORDS, position_hides_case
from kgkit.errors import UsageError
from kgkit.types import Mention
from tests.small_kb import (
    FORMS,
    LEXICON,
    SENSES,
    SMOOTHING,
    build,
    fold,
    lexicon_kb,
    shares_by_hand,
    token_spans,
)

RULES = {
    "n": [("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
          ("men", "man"), ("ies", "y")],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"),
          ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}  # fmt: skip
ALIASES = [
    Alias(lemma, key, count) for key, (_, lemmas) in LEXICON.items() for lemma, count in lemmas.items()
]
LONGEST = max(len(token_spans(alias.surface)) for alias in ALIASES)
WORDS = (
    "attorneys attorney general generals took takes taking take off hot dogs Dog DOGS dog's man men - at "
    "arms arm big geese better well wells saw saws leaves axes churches glass glasses running ran hoped "
    "hoping hopped flies flew bigger biggest half I A a the have Turkey turkeys TURKEY things "
    "thing women 1990s , domestic chase"
).split()
texts = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", " ", "", "\n", "\n\n", "\u00a0"])), max_size=9
)

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with lexicon_kb(tmp_path_factory.mktemp("lexicon")) as opened:
        yield opened


@pytest.fixture(scope="module")
def generator(kb):
    return LemmaGenerator(kb)


def pos_of(key: str) -> str:
    return LEXICON[key][0].replace("s", "a")


def known(lemma: str, pos: str) -> bool:
    return any(fold(alias.surface) == lemma and pos_of(alias.key) == pos for alias in ALIASES)


def lemmas_by_hand(form: str) -> set[tuple[str, str]]:
    """Return every lemma that *form* may be an inflection of, and its part of speech."""
    found = set()
    for pos, rules in RULES.items():
        irregular = {entry.lemma for entry in FORMS if entry.surface == form and entry.pos == pos}
        for lemma in irregular:
            found.add((lemma, pos))
        if irregular or len(form) <= 2 or not form.isalpha() or (pos == "n" and form.endswith("ss")):
            continue
        for ending, instead in rules:
            lemma = form.removesuffix(ending) + instead
            least = 2 if pos == "v" else 3
            if form.endswith(ending) and len(lemma) >= least and known(lemma, pos):
                found.add((lemma, pos))
    return {(lemma, pos) for lemma, pos in found if lemma != form}


def mentions_by_hand(text: str) -> list[tuple[int, int, dict[str, float]]]:
    """Look up every span in every way its tokens can be read."""
    found, tokens = [], token_spans(text)
    readings = [
        [(fold(text[start:end]), pos) for pos in RULES] + sorted(lemmas_by_hand(fold(text[start:end])))
        for start, end in tokens
    ]
    for first, last in product(range(len(tokens)), repeat=2):
        gaps = [text[tokens[at][1] : tokens[at + 1][0]] for at in range(first, last)]
        if not 0 <= last - first < LONGEST or any(gap.count("\n") > 1 for gap in gaps):
            continue
        start, end = tokens[first][0], tokens[last][1]
        spelled = text[start:end]
        hidden = not is_case_informative(text)
        hidden = hidden or (not spelled.islower() and position_hides_case(text, start, end))
        if first == last and (
            spelled in FUNCTION_WORDS or (hidden and spelled.isupper() and spelled.lower() in FUNCTION_WORDS)
        ):
            continue
        read = set()
        for forms in product(*readings[first : last + 1]):
            if len({pos for _, pos in forms}) == 1:
                glue = ["", *[" " if gap else "" for gap in gaps]]
                surface = "".join(between + form for between, (form, _) in zip(glue, forms, strict=True))
                read.add((surface, forms[0][1]))
        weights: dict[str, float] = {}
        for surface in {surface for surface, _ in read}:
            total = sum(alias.count + SMOOTHING for alias in ALIASES if fold(alias.surface) == surface)
            priors = shares_by_hand(ALIASES, surface, SMOOTHING, prefer_case=not hidden, spelled=spelled)
            for key, prior in priors.items():
                if (surface, pos_of(key)) in read:
                    weights[key] = weights.get(key, 0) + prior * total
        if weights:
            priors = {key: weight / sum(weights.values()) for key, weight in weights.items()}
            found.append((start, end, dict(sorted(priors.items(), key=lambda item: -item[1])[:30])))
    return found


def told(generator: LemmaGenerator, mentions: list[Mention]) -> list[tuple[int, int, dict[str, float]]]:
    """Return start, end and priors by key of every mention."""
    return [
        (
            mention.start,
            mention.end,
            {generator.kb.key(entity): prior for entity, _, prior in mention.candidates or ()},
        )
        for mention in mentions
    ]


def meanings(generator: LemmaGenerator, text: str) -> dict[str, set[str]]:
    """Return the text of every mention and the keys of what it may mean."""
    return {text[start:end]: set(priors) for start, end, priors in told(generator, generator.mentions(text))}


@unhurried
@given(pieces=texts)
def test_mentions_are_those_of_the_generator_written_for_the_eye(generator, pieces):
    text = "".join(word + gap for word, gap in pieces)
    assume(not joining_hyphens(text))
    found, expected = told(generator, generator.mentions(text)), mentions_by_hand(text)
    assert [(start, end) for start, end, _ in found] == [(start, end) for start, end, _ in expected]
    for (_, _, priors), (_, _, by_hand) in zip(found, expected, strict=True):
        assert priors == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize(
    "form", [fold(word) for word in WORDS] + ["as", "ss", "s", "ed", "axis", "hoping", "hots"]
)
def test_lemmas_are_those_of_the_rules_read_aloud(generator, form):
    assert set(generator.lemmas(form)) == lemmas_by_hand(form)
    assert len(generator.lemmas(form)) == len(set(generator.lemmas(form)))


@unhurried
@given(form=st.text("sdngrtevmiaxchofw", max_size=8))
def test_any_form_has_the_lemmas_of_the_rules_read_aloud(generator, form):
    assert set(generator.lemmas(form)) == lemmas_by_hand(form)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("dogs", {("dog", "n"), ("dog", "v")}),
        ("Dogs", {("dog", "n"), ("dog", "v")}),
        ("geese", {("goose", "n")}),
        ("better", {("good", "a"), ("well", "a"), ("well", "r")}),
        ("saw", {("see", "v")}),
        ("women", {("woman", "n")}),
        ("leaves", {("leaf", "n"), ("leave", "n"), ("leave", "v")}),
        ("churches", {("church", "n")}),
        ("hoping", {("hope", "v"), ("hop", "v")}),
        ("axes", {("axis", "n"), ("axe", "n")}),
        ("glass", set()),
        ("men", {("man", "n")}),
        ("dog", set()),
        ("unicorns", set()),
    ],
)
def test_an_inflected_form_leads_to_its_lemmas(generator, form, expected):
    assert set(generator.lemmas(form)) == expected


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("The attorneys general met.", "attorneys general", {"attorney_general.n"}),
        ("She took off.", "took off", {"take_off.v"}),
        ("Two Hot Dogs!", "Hot Dogs", {"hot_dog.n"}),
        ("hot\ndogs", "hot\ndogs", {"hot_dog.n"}),
        ("the men-at-arms", "men-at-arms", {"man-at-arms.n"}),
        ("I saw it", "saw", {"see.v", "saw.n", "saw.v"}),
        ("better off", "better off", {"well_off.a"}),
        ("better halves", "better", {"good.a", "good.s", "well.r", "better.n"}),
        ("my better half", "better half", {"better_half.n"}),
        ("better off", "better", {"good.a", "good.s", "well.r", "better.n"}),
        ("naïve geese", "geese", {"goose.n"}),
    ],
)
def test_an_inflected_span_means_what_its_lemma_means(generator, text, span, expected):
    assert meanings(generator, text)[span] == expected


def test_spans_that_overlap_are_all_kept(generator):
    found = [mention.text for mention in generator.mentions("hot dogs taking off")]
    assert found == ["hot", "hot dogs", "dogs", "taking", "taking off", "off"]


def test_a_span_does_not_cross_a_blank_line(generator):
    assert set(meanings(generator, "hot\n\ndogs")) == {"hot", "dogs"}
    assert set(meanings(generator, "hot \n \n dogs")) == {"hot", "dogs"}


def test_forms_agree_in_part_of_speech(generator):
    assert meanings(generator, "big dogs")["big dogs"] == {"big_dog.n"}
    assert "bigger dogs" not in meanings(generator, "bigger dogs")  # an adjective and a noun


def test_a_reading_as_it_stands_and_one_by_its_lemma_are_weighed_by_their_counts(generator):
    ((_, _, priors),) = told(generator, generator.mentions("saw"))
    assert list(priors) == ["see.v", "saw.n", "saw.v"]
    assert priors == pytest.approx({"see.v": 121 / 127, "saw.n": 4 / 127, "saw.v": 2 / 127})


def test_a_candidate_carries_the_sense_of_the_lemma_that_matched(kb, generator):
    (mention,) = generator.mentions("lawyers")
    assert [candidate.sense for candidate in kb.decode(mention.candidates)] == ["lawyer%attorney.n"]
    (mention,) = generator.mentions("saw")
    assert [candidate.sense for candidate in kb.decode(mention.candidates)] == [
        "see%see.v", "saw%saw.n", "saw%saw.v",
    ]  # fmt: skip


def test_function_words_alone_are_no_mention_but_part_of_one(generator):
    assert set(meanings(generator, "I have a the dog")) == {"dog"}
    assert set(meanings(generator, "man-at-arms")) == {"man", "man-at-arms", "arms"}
    assert meanings(generator, "A the Have") == {}  # as a sentence may begin
    assert meanings(generator, "HAVE A DOG") == {"DOG": {"dog.n", "dog.v"}}
    assert meanings(generator, "We HAVE it") == {"HAVE": {"have.v"}}  # in a sentence that is not in capitals


def test_function_words_are_a_setting(kb):
    every = LemmaGenerator(kb, LemmaConfig(skip=frozenset()))
    assert set(meanings(every, "I have a dog")) == {"I", "have", "a", "dog"}
    assert set(meanings(LemmaGenerator(kb, LemmaConfig(skip=frozenset({"dog"}))), "hot dog")) == {
        "hot",
        "hot dog",
    }


def test_function_words_are_mentions_as_nouns_for_a_scorer_that_reads_parts_of_speech(kb):
    nouns = LemmaGenerator(kb, LemmaConfig(skip=frozenset({"dog", "have"}), nouns=True))
    assert meanings(nouns, "have dog") == {"dog": {"dog.n"}}


def test_function_words_are_no_mentions_as_abbreviations_nor_without_a_part_of_speech(tmp_path):
    records = [
        Entity("can.n", "can", pos="n"), Alias("can", "can.n", 1), Entity("in.n", "IN", pos="n"),
        Alias("IN", "in.n", 1), Entity("will", "will"), Alias("will", "will", 1),
    ]  # fmt: skip
    with build(tmp_path, records, name="words", smoothing=1.0, generator="lemma") as kb:
        assert set(meanings(LemmaGenerator(kb, LemmaConfig(nouns=True)), "can in will")) == {"can"}


def test_a_mention_has_at_most_thirty_candidates(generator):
    (mention,) = generator.mentions("things")
    assert len(mention.candidates) == 30
    assert mention.candidates.priors.sum() < 1


def test_the_cut_comes_after_the_part_of_speech(generator):
    def of(pos: str, lemma: str = "") -> list[str]:
        given = Mention(0, 6, "things" if not lemma else "what", lemma=lemma, pos=pos)
        return [generator.kb.key(entity) for entity in generator.candidates_of(given).ids]

    verbs = [f"thing.v.{number}" for number in range(5)]
    assert of("v") == of("VERB") == of("v", "thing") == verbs
    assert len(of("n")) == len(of("n", "thing")) == len(of("")) == 30
    assert SENSES > 30


def test_the_cut_the_floor_and_null_are_settings(kb, generator):
    (plain,) = generator.mentions("saw")
    (cut,) = LemmaGenerator(kb, LemmaConfig(max_candidates=2)).mentions("saw")
    assert list(cut.candidates) == list(plain.candidates)[:2]
    (strong,) = LemmaGenerator(kb, LemmaConfig(min_prior=0.5)).mentions("saw")
    assert list(strong.candidates) == list(plain.candidates)[:1]
    (doubted,) = LemmaGenerator(kb, LemmaConfig(null=0.5)).mentions("saw")
    assert doubted.candidates.null == 0.5
    assert doubted.candidates.priors == pytest.approx(plain.candidates.priors / 2)
    for wrong in ({"max_candidates": 0}, {"min_prior": 2}, {"null": 1}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*; it is "):
            LemmaConfig(**wrong)


def test_a_given_mention_keeps_null_when_it_has_a_part_of_speech(kb):
    doubting = LemmaGenerator(kb, LemmaConfig(null=0.5))
    for lemma in ("", "saw"):
        found = doubting.candidates_of(Mention(0, 3, "saw", pos="n", lemma=lemma))
        assert (found.null, found.priors.tolist()) == (0.5, [0.5])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Mention(0, 9, "Hot  Dogs"), {"hot_dog.n"}),
        (Mention(0, 5, " dog "), {"dog.n", "dog.v"}),
        (Mention(0, 3, "dog", pos="v"), {"dog.v"}),
        (Mention(0, 4, "have"), {"have.v"}),  # somebody says it is one, function word or not
        (Mention(0, 4, "what", lemma="Turkey"), {"Turkey.n", "turkey.n"}),
        (Mention(0, 6, "better", pos="r"), {"well.r"}),
        (Mention(0, 8, "hot cats"), set()),
        (Mention(0, 0, ""), set()),
        (Mention(0, 1, " "), set()),
        (Mention(0, 3, "dog", lemma="unicorn"), set()),
        (Mention(0, 3, "dog", pos="DET"), set()),
    ],
)
def test_a_given_mention_is_looked_up_whole(generator, given, expected):
    assert {generator.kb.key(entity) for entity in generator.candidates_of(given).ids} == expected


def test_a_lexicon_may_have_more_parts_of_speech_than_a_row_has_bits_for(tmp_path):
    kinds = ["n", "v", "a", "r", "x", "y", "z", "q", "w", "u"]
    records: list[Record] = [Entity(f"run.{pos}", pos=pos) for pos in kinds]
    records += [Alias("run", f"run.{pos}", 1) for pos in kinds]
    with build(tmp_path, records, generator="lemma") as kb:
        generator = LemmaGenerator(kb)
        assert {kb.key(entity) for entity in kb.candidates("run", pos="w").ids} == {"run.w"}
        (mention,) = generator.mentions("runs")
        assert len(mention.candidates) == len(kinds)
        assert [kb.key(entity) for entity in generator.candidates_of(Mention(0, 4, "runs", pos="v")).ids] == [
            "run.v"
        ]


def test_a_lexicon_need_not_count_nor_say_parts_of_speech(tmp_path):
    records = [
        Entity("goose"), Entity("geese"), Alias("goose", "goose"), Alias("geese", "geese"),
        Form("geese", "goose", "NOUN"), Form("geese", "ghost", "x"), Triple("goose", "is", "goose"),
        Entity("bird", pos="n"), Alias("goose", "bird"),
    ]  # fmt: skip
    with build(tmp_path, records, generator="lemma") as kb:
        generator = LemmaGenerator(kb)
        assert told(generator, generator.mentions("geese")) == [
            (
                0,
                5,
                {"geese": pytest.approx(1 / 3), "goose": pytest.approx(1 / 3), "bird": pytest.approx(1 / 3)},
            )
        ]


NOT_WORDS = {
    "fifty.s": {"l": 0}, "do.v": {"do": 9}, "go.v": {"go": 9}, "indium.n": {"in": 0}, "nest.n": {"nest": 1},
    "computer.n": {"PC": 2}, "United_States.n": {"US": 3}, "use.v": {"use": 3}, "love.v": {"do it": 0},
    "room.n": {"men's": 0}, "man.n": {"man": 5}, "get_on.v": {"be on": 1}, "soon.r": {"and so on": 9},
    "wear.v": {"have on": 8}, "build.v": {"build": 5}, "build_in.v": {"build in": 0},
    "tend.v": {"be given": 0}, "London.n": {"the City": 0}, "city.n": {"city": 8},
    "be_born.v": {"be born": 4}, "Eve.n": {"New Year's": 0}, "Hague.n": {"The Hague": 0},
    "give.v": {"give": 3}, "then.r": {"and so": 0}, "fun.n": {"fun": 1}, "thing.n": {"thing": 2},
    "after.a": {"aft": 0}, "well.r": {"well": 1}, "do_well.v": {"do well": 1},
}  # fmt: skip
IRREGULAR = [
    Form("did", "do", "v"), Form("men", "man", "n"), Form("were", "be", "v"), Form("had", "have", "v"),
    Form("built", "build", "v"), Form("was", "be", "v"), Form("given", "give", "v"),
]  # fmt: skip


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    aliases = [Alias(lemma, key, n) for key, counts in NOT_WORDS.items() for lemma, n in counts.items()]
    entities = [Entity(key, pos=key[-1]) for key in NOT_WORDS]
    folder = tmp_path_factory.mktemp("not-words")
    with build(folder, [*entities, *aliases, *IRREGULAR], generator="lemma", smoothing=1.0) as kb:
        yield kb


def found_in(kb, text, **config):
    """Return the best entity of each mention of *text*, and whether it is certain."""
    mentions = LemmaGenerator(kb, LemmaConfig(**config)).mentions(text)
    best = [kb.get(int(mention.candidates.ids[0])).key for mention in mentions]
    certain = [mention.candidates.link_probability == 1 for mention in mentions]
    return {mention.text: (key, sure) for mention, key, sure in zip(mentions, best, certain, strict=True)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hide it lest he see it.", {}),
        ("uses of his PCs", {"uses": ("use.v", True), "PCs": ("computer.n", True)}),
        ("It goes, going on", {"goes": ("go.v", True), "going": ("go.v", True)}),
        ("the thing in its box", {"thing": ("thing.n", True)}),
        ("She did it, and so she did well.", {"did well": ("do_well.v", True), "well": ("well.r", True)}),
        ("They were on it, having had on shoes.", {}),
        ("They want to be on, and so on", {"be on": ("get_on.v", False), "and so on": ("soon.r", False)}),
        ("The men's team won.", {"men": ("man.n", True)}),
        ("Where is the men's?", {"men": ("man.n", True), "men's": ("room.n", True)}),
        ("New Year's party", {"New Year's": ("Eve.n", True)}),
        ("built in the city", {
            "built": ("build.v", True), "built in": ("build_in.v", False), "city": ("city.n", True),
        }),
        ("the City of The Hague", {
            "the City": ("London.n", True), "City": ("city.n", True), "The Hague": ("Hague.n", True),
        }),
        ("born in fun, he was born and was given", {
            "fun": ("fun.n", True), "was born": ("be_born.v", True), "given": ("give.v", True),
        }),
    ],
)  # fmt: skip
def test_words_that_join_others_are_seldom_what_a_lexicon_has_them_for(lexicon, text, expected):
    assert found_in(lexicon, text) == expected


def test_all_surfaces_are_there_for_whoever_asks(lexicon):
    found = found_in(lexicon, "The men's team did it in the US", all_surfaces=True)
    assert found["men's"] == ("room.n", True)
    assert {"did it", "in", "US"} <= found.keys()


def test_given_mentions_mean_what_the_lexicon_has_them_for(lexicon):
    generator = LemmaGenerator(lexicon)
    for text, lemma, key in [
        ("did it", "", "love.v"),
        ("men's", "", "room.n"),
        ("were on", "be on", "get_on.v"),
    ]:
        candidates = generator.candidates_of(Mention(0, len(text), text, lemma=lemma))
        assert lexicon.get(int(candidates.ids[0])).key == key
        assert candidates.null == 0
