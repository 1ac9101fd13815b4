"""Senses from plain text: how a data set is written as text, and what of its links counts."""

from benchmarks.raw_senses import counted, read_tagged
from kgkit.types import Link

DATA = """<corpus><text id="d0" source="x">
<sentence id="d0.s0">
<wf lemma="``" pos=".">``</wf><wf lemma="he" pos="PRON">He</wf><wf lemma="do" pos="VERB">did</wf>
<wf lemma="not" pos="ADV">n't</wf><instance id="i0" lemma="see" pos="VERB">see</instance>
<wf lemma="the" pos="DET">the</wf><instance id="i1" lemma="dog" pos="NOUN">dog</instance>
<wf lemma="'s" pos="PRT">'s</wf><instance id="i2" lemma="hot_dog" pos="NOUN">hot dogs</instance>
<wf lemma="-lrb-" pos=".">-LRB-</wf><wf lemma="6" pos="NUM">6</wf><wf lemma="-rrb-" pos=".">-RRB-</wf>
<wf lemma="," pos=".">,</wf><wf lemma="''" pos=".">''</wf>
</sentence>
<sentence id="d0.s1"><wf lemma="so" pos="ADV">So</wf><wf lemma="." pos=".">.</wf></sentence>
</text></corpus>"""
GOLD = {"i0": ("see%2:39:00::",), "i1": ("dog%1:05:00::",), "i2": ("hot_dog%1:13:01::",)}


def tagged(tmp_path):
    path = tmp_path / "x.data.xml"
    path.write_text(DATA)
    [text] = read_tagged(path)
    return text


def link(text, words, sense):
    start = text.document.text.index(words)
    return Link(start, start + len(words), words, "wordnet", sense, sense, "", 1.0, nil=False, candidates=[])


def test_a_text_is_written_as_one_writes_it(tmp_path):
    text = tagged(tmp_path)
    assert text.document.text == "“He didn't see the dog's hot dogs (6),”\nSo."
    for token in text.tokens:
        if token.id:
            assert text.document.text[token.start : token.end] in ("see", "dog", "hot dogs")


def test_instances_and_links_are_counted_by_part_of_speech(tmp_path):
    text = tagged(tmp_path)
    links = [
        link(text, "see", "see%1:15:00::"),
        link(text, "dog", "dog%1:05:00::"),
        link(text, "dogs", "dog%1:05:00::"),
        link(text, "He", "helium%1:27:00::"),
    ]
    counts, on_function_words, function_words = counted(text, links, GOLD)
    verbs, nouns = counts["v"], counts["n"]
    assert (verbs.instances, verbs.found, verbs.right_pos, verbs.right, verbs.links) == (1, 1, 0, 0, 1)
    assert (nouns.instances, nouns.found, nouns.right_pos, nouns.right, nouns.links) == (2, 1, 1, 1, 2)
    assert (on_function_words, function_words) == (1, 2)  # He, the
