"""A WordNet small enough to read: database files of some thirty synsets, written from the list below.

    mini_wordnet(folder)          writes data.*, index.*, *.exc and cntlist.rev; returns the folder

What it has of everything that WordNet has:

    case variants       turkey and Turkey are two meanings of one surface; Earth and earth two words of
                        one synset, with one sense key between them
    several words       hot_dog, domestic_dog, chase_after
    parts of speech     `well` is a noun, a verb, an adjective and an adverb
    satellites          beneficial of good; aghast of afraid(p), a head that has a syntactic marker
    markers             afraid(p), aghast(p), running(a)
    verb frames         of a whole synset and of one word (dog, in chase.v.01)
    counts              including one under a key with a marker, as the real cntlist.rev has them
    irregular forms     mice, ran, better (an adjective of two lemmas, and an adverb), worse
    one-way pointers    dog ^ hot_dog; and a derivation written twice (well, swell)
"""

from pathlib import Path
from typing import Final, NamedTuple

PARTS: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# What the other end of a pointer says; other symbols point one way.
TURNED: Final = {
    "@": "~", "@i": "~i", "#m": "%m", "#s": "%s", "#p": "%p", ";c": "-c", ";r": "-r", ";u": "-u",
    "=": "=", "!": "!", "+": "+", "$": "$", "&": "&",
}  # fmt: skip


class Synset(NamedTuple):
    """One synset, as one would write it by hand.

    Attributes:
        kind: n, v, a, s or r.
        file: number of the lexicographer file.
        words: with lex id where it is not 0 (`dog:1`) and marker (`afraid(p)`).
        gloss: definition and examples.
        pointers: `@ n.animal` to the first synset of nouns that begins with that word; `! good a.bad`
            from this synset's `good` to the first adjective `bad`. The other synset's pointer back need
            not be said.
        frames: `8` for all words, `8/3` for the third.
    """

    kind: str
    file: int
    words: str
    gloss: str
    pointers: tuple[str, ...] = ()
    frames: str = ""


SYNSETS: Final = (
    Synset("n", 3, "entity", "that which is perceived to have its own distinct existence"),
    Synset("n", 3, "animal animate_being", "a living organism that can move", ("@ n.entity",)),
    Synset("n", 3, "person individual", 'a human being; "too much for one person"', ("@ n.entity",)),
    Synset(
        "n", 5, "dog domestic_dog Canis_familiaris", 'a member of the genus Canis; "the dog barked"',
        ("@ n.animal", "#m n.pack", "^ n.hotdog", ";c n.zoology"),
    ),
    Synset("n", 5, "puppy", "a young dog", ("@ n.dog",)),
    Synset("n", 5, "mouse", "a small rodent", ("@ n.animal",)),
    Synset("n", 5, "turkey", "a large bird with a fan-shaped tail", ("@ n.animal",)),
    Synset("n", 13, "hotdog hot_dog dog:2 wiener", "a sausage, usually on a bread roll", ("@ n.entity",)),
    Synset("n", 18, "frump dog:1", 'a dull unpleasant woman; "she\'s a real dog"', ("@ n.person",)),
    Synset("n", 14, "pack", "a group of hunting animals", ("@ n.entity",)),
    Synset("n", 15, "country state", "the territory occupied by a nation", ("@ n.entity",)),
    Synset("n", 15, "Turkey Republic_of_Turkey", "a Eurasian republic in Asia Minor", ("@i n.country",)),
    Synset("n", 17, "Earth earth globe", "the 3rd planet from the sun", ("@i n.entity",)),
    Synset("n", 17, "bank:1", 'sloping land; "they pulled the canoe up on the bank"', ("@ n.entity",)),
    Synset("n", 14, "depository bank", "a financial institution that accepts deposits", ("@ n.entity",)),
    Synset("n", 6, "well", "a deep hole dug to obtain water or oil or gas", ("@ n.entity",)),
    Synset("n", 9, "zoology", "the branch of biology that studies animals", ("@ n.entity",)),
    Synset("n", 7, "goodness", "that which is pleasing or valuable", ("@ n.entity", "+ goodness a.good")),
    Synset(
        "v", 38, "chase chase_after dog", 'go after with the intent to catch; "The dog chased the rabbit"',
        ("@ v.travel",), "8 9 1/3",
    ),
    Synset("v", 38, "travel go move:1", "change location", ("$ v.run",), "1 2"),
    Synset(
        "v", 38, "run", 'move fast by using the feet; "Don\'t run"; "the children ran to the store"',
        ("@ v.travel", "* v.travel"), "2",
    ),
    Synset(
        "v", 38, "well swell", "come up, as of a liquid",
        ("@ v.travel", "+ well n.well", "+ well n.well", "> v.travel"), "1",
    ),
    Synset("a", 0, "good well:1", "desirable", ("! good a.bad", "= n.goodness", "^ s.beneficial")),
    Synset("a", 0, "bad", "undesirable"),
    Synset("s", 0, "beneficial good:1", "promoting or enhancing well-being", ("& a.good",)),
    Synset("a", 0, "afraid(p)", 'filled with fear; "afraid even to turn his head"'),
    Synset("s", 0, "aghast(p) appalled", "struck with fear, dread, or consternation", ("& a.afraid",)),
    Synset("a", 1, "canine", "of or relating to dogs", ("\\ canine n.dog",)),
    Synset("a", 44, "running(a)", "executed while running", ("< running v.run",)),
    Synset("r", 2, "well good:3", 'in a good manner; "the children behaved well"', ("! well r.badly",)),
    Synset("r", 2, "badly", "in an unsatisfactory manner", ("\\ badly a.bad",)),
)  # fmt: skip

COUNTS: Final = {
    "dog%1:05:00::": 42, "dog%1:18:01::": 2, "dog%2:38:00::": 2, "bank%1:17:01::": 25, "bank%1:14:00::": 20,
    "person%1:03:00::": 200, "run%2:38:00::": 106, "good%3:00:00::": 190, "good%5:00:01:good:00": 3,
    "well%4:02:00::": 178, "earth%1:17:00::": 14, "aghast%5:00:00:afraid(p):00": 2,
}  # fmt: skip

EXCEPTIONS: Final = {
    "noun": ("mice mouse",),
    "verb": ("ran run", "went go"),
    "adj": ("better good well", "worse bad"),
    "adv": ("better well",),
}


def mini_wordnet(folder: Path, version: str = "3.0") -> Path:
    """Write the database files of *version* into *folder* and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    pointers = _both_ways()
    # Offsets have eight digits whatever they are: lines know their length before they know their offset.
    offsets = dict.fromkeys(range(len(SYNSETS)), 0)
    for part in PARTS:
        at = len(_header(version).encode())
        for number in _numbers(part):
            offsets[number] = at
            at += len(_data_line(number, pointers[number], offsets).encode())
    for part, name in PARTS.items():
        lines = [_data_line(number, pointers[number], offsets) for number in _numbers(part)]
        (folder / f"data.{name}").write_bytes((_header(version) + "".join(lines)).encode())
        index = _header(version) + "".join(sorted(_index_lines(part, pointers, offsets)))
        (folder / f"index.{name}").write_bytes(index.encode())
        exceptions = "".join(f"{line}\n" for line in EXCEPTIONS[name])
        (folder / f"{name}.exc").write_text(exceptions, encoding="ascii")
    counts = "".join(f"{key} 1 {count}\n" for key, count in sorted(COUNTS.items()))
    (folder / "cntlist.rev").write_text(counts, encoding="ascii")
    return folder


class _Pointer(NamedTuple):
    symbol: str
    target: int
    words: tuple[int, int] = (0, 0)  # from 1, in the source and in the target; 0 for the whole synset

    def turned(self, source: int) -> "_Pointer":
        return _Pointer(TURNED[self.symbol], source, self.words[::-1])


def _words(number: int) -> list[tuple[str, str, int]]:
    """Return (as written, without its marker, lex id) of each word."""
    found = []
    for word in SYNSETS[number].words.split():
        spelled, _, lex = word.partition(":")
        found.append((spelled, spelled.partition("(")[0], int(lex or 0)))
    return found


def _numbers(part: str) -> list[int]:
    return [number for number, synset in enumerate(SYNSETS) if synset.kind.replace("s", "a") == part]


def _both_ways() -> list[list[_Pointer]]:
    pointers: list[list[_Pointer]] = [[] for _ in SYNSETS]
    for number, synset in enumerate(SYNSETS):
        for text in synset.pointers:
            symbol, *source, target = text.split()
            pointer = _Pointer(symbol, *_target(number, source, *target.split(".")))
            pointers[number].append(pointer)
            if symbol in TURNED:
                pointers[pointer.target].append(pointer.turned(number))
    return pointers


def _target(number: int, source: list[str], kind: str, word: str) -> tuple[int, tuple[int, int]]:
    for other, synset in enumerate(SYNSETS):
        if synset.kind == kind and other != number:
            words = [plain for _, plain, _ in _words(other)]
            if source and word in words:
                from_words = [plain for _, plain, _ in _words(number)]
                return other, (from_words.index(source[0]) + 1, words.index(word) + 1)
            if words[0] == word:
                return other, (0, 0)
    raise LookupError(f"a pointer of {SYNSETS[number].words!r} leads nowhere: {kind}.{word}")


def _data_line(number: int, pointers: list[_Pointer], offsets: dict[int, int]) -> str:
    synset = SYNSETS[number]
    words = " ".join(f"{spelled} {lex:x}" for spelled, _, lex in _words(number))
    parts = [f"{offsets[number]:08d} {synset.file:02d} {synset.kind} {len(_words(number)):02x} {words}"]
    parts.append(f"{len(pointers):03d}")
    for symbol, target, (source_word, target_word) in pointers:
        part = SYNSETS[target].kind.replace("s", "a")
        parts.append(f"{symbol} {offsets[target]:08d} {part} {source_word:02x}{target_word:02x}")
    if synset.frames:
        frames = [frame.partition("/") for frame in synset.frames.split()]
        parts.append(f"{len(frames):02d}")
        parts.extend(f"+ {int(frame):02d} {int(word or 0):02x}" for frame, _, word in frames)
    return f"{' '.join(parts)} | {synset.gloss}  \n"


def _index_lines(part: str, pointers: list[list[_Pointer]], offsets: dict[int, int]) -> list[str]:
    """Return a line a lemma; its senses stand in the order of `SYNSETS`."""
    senses: dict[str, list[int]] = {}
    for number in _numbers(part):
        for _, word, _ in _words(number):
            found = senses.setdefault(word.lower(), [])
            if number not in found:
                found.append(number)
    lines = []
    for lemma, numbers in senses.items():
        symbols = sorted({pointer.symbol[0] for number in numbers for pointer in pointers[number]})
        fields = [lemma, part, len(numbers), len(symbols), *symbols, len(numbers), 0]
        fields += [f"{offsets[number]:08d}" for number in numbers]
        lines.append(" ".join(map(str, fields)) + "  \n")
    return lines


def _header(version: str) -> str:
    """Return the lines that stand where Princeton's files have the licence."""
    year = {"3.0": 2006, "3.1": 2011}[version]
    said = (
        "This is a tiny imitation of a WordNet database, for tests.",
        "Its form is that of the files whose header has this line:",
        f"WordNet {version} Copyright {year} by Princeton University.  All rights reserved.",
    )
    return "".join(f"  {number} {line}  \n" for number, line in enumerate(said, start=1))
