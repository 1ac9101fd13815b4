"""Flip single bits in the data file of a knowledge base, and count what its readers make of it.

After each flip:

    verify      has to refuse the build
    quick       `verify` without reading the tables, the same
    look-ups    of every kind, in a child process: each answers or raises a `KgkitError`
    kb add      refuses the build, or writes one that `verify` refuses: damage is never made sound

What look-ups answer wrongly in silence is counted and is no failure: a look-up checks nothing.
"""

import hashlib
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import kgkit
from kgkit.building.records import StoredRecords
from kgkit.candidates import AliasGenerator, LemmaGenerator
from kgkit.errors import KgkitError
from kgkit.kb import KnowledgeBase
from kgkit.kb.json_records import neighbor_keys
from kgkit.store import verify
from kgkit.store.validate import damages

TEXT: Final = (
    "The dog and the hot dogs were better than mice. Afraid of the running puppy, a person of good animals "
    "chased after Turkey on earth as well. An individual swells beneficially."
)
NEW: Final = (
    '{"key": "new.n.01", "label": "new", "kind": "synset", "pos": "n", "aliases": ["dog", "brand new dog"]}\n'
    '{"subject": "new.n.01", "relation": "hypernym", "object": "dog.n.01"}\n'
)
SECONDS: Final = 120  # for the look-ups of one flip
MEMORY: Final = 1 << 30  # that they may take beyond what is mapped

Answers = dict[str, str]
"""For each look-up a digest of its answer, or the name of what it raised."""


class Sample(NamedTuple):
    """What is looked up, taken from the undamaged build."""

    keys: list[str]
    surfaces: list[str]
    relations: tuple[str, ...]

    @classmethod
    def of(cls, kb: KnowledgeBase, most: int, seed: int) -> "Sample":
        """Return at most so many keys and surfaces, the same ones for one seed."""
        draw = random.Random(seed)
        keys, surfaces = [*kb.keys()], [*kb.surfaces()]
        return cls(
            draw.sample(keys, min(most, len(keys))),
            draw.sample(surfaces, min(most, len(surfaces))),
            kb.relations,
        )


def look_ups(kb, sample):
    """Yield a name and a call for each look-up."""
    first = sample.keys[0]
    for key in sample.keys:
        yield f"kb[{key!r}]", lambda key=key: kb[key]
        yield f"id {key}", lambda key=key: (kb.id(key), key in kb, kb.get(key))
        yield f"neighbors {key}", lambda key=key: kb.neighbors(key)
        yield f"both {key}", lambda key=key: kb.neighbors(key, direction="both")
        yield f"degree {key}", lambda key=key: kb.degree(key, direction="in")
        yield f"match {key}", lambda key=key: [*kb.match(key), *kb.match(object=key)]
        yield f"show {key}", lambda key=key: neighbor_keys(kb, kb[key])
    for key in sample.keys[:50]:
        yield f"path {key}", lambda key=key: kb.path(first, key)
        yield f"subgraph {key}", lambda key=key: sorted(kb.subgraph(key).edges(keys=True))
    for relation in sample.relations:
        yield f"walk {relation}", lambda relation=relation: [*kb.walk(first, relation)]
    for number in range(min(len(kb), len(sample.keys))):
        yield f"kb[{number}]", lambda number=number: (kb[number], kb.key(number))
        yield f"neighbors {number}", lambda number=number: kb.neighbors(number).tolist()
    for text in sample.surfaces:
        yield f"candidates {text}", lambda text=text: kb.decode(kb.candidates(text))
        yield f"nouns {text}", lambda text=text: kb.decode(kb.candidates(text, pos="n"))
        yield f"spelled {text}", lambda text=text: kb.candidates(text.title()).rows.tolist()
    yield from _sweeps(kb, first)


def _sweeps(kb, first):
    """Yield the look-ups that read whole tables, or texts."""
    store = kb.store
    yield "fuzzy", lambda: kb.candidates("domestik dog", fuzzy=True).rows.tolist()
    yield "entities", lambda: [*kb]
    yield "keys", lambda: [*kb.keys()]
    yield "surfaces", lambda: [*kb.surfaces()]
    yield "triples", lambda: [*kb.match()]
    yield "hypernyms", lambda: [*kb.match(relation="hypernym")]
    yield "records", lambda: [*StoredRecords(kb).everything()]
    yield "starts", lambda: [store.starts(key.decode()) for key, _ in store.items("starts")]
    yield "forms", lambda: [store.lemmas(key.decode()) for key, _ in store.items("forms")]
    yield "meta", lambda: (kb.class_bits(), store.classes, kb.relations, repr(kb))
    for generator in (LemmaGenerator, AliasGenerator):
        yield (
            generator.__name__,
            lambda generator=generator: [
                (mention.start, mention.end, mention.candidates.rows.tolist())
                for mention in generator(kb).mentions(TEXT)
            ],
        )
    for coherence in (None, "graph"):
        yield (
            f"link {coherence}",
            lambda coherence=coherence: [*kgkit.Linker(kb, kgkit.LinkSettings(coherence=coherence))([TEXT])],
        )


def answers(home: Path, sample: Sample) -> tuple[Answers, dict[str, str]]:
    """Open the KB and look everything up; return the answers, and a traceback for each unforeseen error."""
    found: Answers = {}
    unforeseen: dict[str, str] = {}

    def ask(name: str, call: Callable[[], Any]) -> None:
        try:
            found[name] = hashlib.blake2b(repr(call()).encode(errors="replace"), digest_size=8).hexdigest()
        except KgkitError as error:
            found[name] = f"refused: {type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - which there are is the question
            found[name] = f"raised: {type(error).__name__}"
            unforeseen[type(error).__name__] = traceback.format_exc()

    try:
        kb = kgkit.open_kb("kb", home=home)
    except KgkitError as error:
        return {"open": f"refused: {type(error).__name__}"}, {}
    except Exception as error:  # noqa: BLE001
        return {"open": f"raised: {type(error).__name__}"}, {type(error).__name__: traceback.format_exc()}
    with kb:
        for name, call in look_ups(kb, sample):
            ask(name, call)
    return found, unforeseen


class Crash(NamedTuple):
    """The end of a child process that did not end by itself."""

    how: str


def streamed(call: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield what *call* yields in a forked child; if something ends the child, a `Crash` comes last."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            most = resource.getrlimit(resource.RLIMIT_AS)[1]
            resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, most))
            with os.fdopen(writing, "wb") as pipe:
                signal.alarm(SECONDS)
                for message in call():
                    pickle.dump(message, pipe)
                    pipe.flush()
                    signal.alarm(SECONDS)
            status = 0
        except BaseException:  # noqa: BLE001 - nothing of the parent runs in the child
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        while True:
            try:
                yield pickle.load(pipe)
            except EOFError:
                break
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        yield Crash(signal.Signals(os.WTERMSIG(status)).name)
    elif status:
        yield Crash(f"exit {os.WEXITSTATUS(status)}")


def verified(folder: Path) -> str:
    """Return whether `verify` refuses a build, finds it sound, or fails itself."""
    try:
        return "refused" if verify(folder) else "SOUND"
    except KgkitError:
        return "refused"
    except Exception as error:  # noqa: BLE001
        return f"raised {type(error).__name__}"


def added(home: Path, records: Path, shown: set[str]) -> str:
    """Add *records* to the KB; return what became of it, and remove the new build."""
    kb = kgkit.home.Home(home).kb("kb")
    before = kb.published()
    try:
        built = kgkit.add_to_kb("kb", records, home=home)
    except KgkitError as error:
        return f"refused: {type(error).__name__}"
    except Exception as error:  # noqa: BLE001
        if type(error).__name__ not in shown:
            shown.add(type(error).__name__)
            traceback.print_exc()
        return f"RAISED {type(error).__name__}"
    outcome = verified(built.path)
    kb.current.unlink()
    kb.current.symlink_to(Path("builds") / str(before))
    if built.build != before:
        shutil.rmtree(built.path)
    return f"written, verify: {outcome}"


def outcome(found: Answers, sound: Answers) -> str:
    """Return what the look-ups of one flip came to: the worst of it."""
    if raised := sorted({what.split()[1] for what in found.values() if what.startswith("raised")}):
        return f"RAISED {', '.join(raised)}"
    if found.keys() == {"open"}:
        return "refused when opened"
    differing = {what for name, what in found.items() if what != sound[name]}
    if refused := sorted({what for what in differing if what.startswith("refused")}):
        return ", ".join(refused)
    return "answered wrongly in silence" if differing else "answered as before"


class Stress:
    """A published build named `kb`, and what is asked of it after each flip.

    Args:
        folder: for the records that are added.
        home: of the KB.
        seed: of what is looked up.
        most: keys and surfaces that are looked up.
        add: whether to try `kb add` too.
    """

    def __init__(self, folder: Path, home: Path, seed: int, most: int, *, add: bool) -> None:
        self.home, self.kb = home, kgkit.home.Home(home).kb("kb")
        self.build = self.kb.builds / str(self.kb.published())
        self.data = self.build / "data.mdb"
        self.records = folder / "new.jsonl"
        self.records.write_text(NEW)
        self.steps = ("verify", "quick", "look-ups", "kb add") if add else ("verify", "quick", "look-ups")
        with kgkit.open_kb("kb", home=home) as kb:
            self.sample = Sample.of(kb, most, seed)
        self.sound, unforeseen = answers(home, self.sample)
        assert not unforeseen, unforeseen
        self._shown: set[str] = set()

    def run(self, flips: int, seed: int) -> Counter[tuple[str, str]]:
        """Flip so many bits, one after the other, and count what came of each step."""
        draw, size = random.Random(seed), self.data.stat().st_size
        bits = [(draw.randrange(size), 1 << draw.randrange(8)) for _ in range(flips)]
        counts: Counter[tuple[str, str]] = Counter()
        done = 0
        while done < len(bits):
            step = 0
            for message in streamed(lambda: self._tried(bits[done:])):  # noqa: B023 - it ends before `done` goes on
                if isinstance(message, Crash):
                    counts[self.steps[step], f"CRASHED: {message.how}"] += 1
                    at, bit = bits[done]
                    self._flip(at, bit)
                    done += 1
                    self._restore()
                    break
                counts[self.steps[step], message] += 1
                step = (step + 1) % len(self.steps)
                done += not step
        assert verify(self.build) == []
        return counts

    def _tried(self, bits: list[tuple[int, int]]) -> Iterator[str]:
        """Yield what each step comes to, flip by flip."""
        for at, bit in bits:
            self._flip(at, bit)
            yield verified(self.build)
            yield "refused" if damages(self.build) else "SOUND"
            found, unforeseen = answers(self.home, self.sample)
            for kind in sorted(unforeseen.keys() - self._shown):
                print(f"at {at}, {bit}: {unforeseen[kind]}", file=sys.stderr)
            self._shown |= unforeseen.keys()
            came_to = outcome(found, self.sound)
            if "kb add" in self.steps:
                yield came_to
                came_to = added(self.home, self.records, self._shown)
            self._flip(at, bit)  # before the last step is told: a crash after it is of the next flip
            yield came_to

    def _flip(self, at: int, bit: int) -> None:
        with self.data.open("r+b", buffering=0) as data:
            good = os.pread(data.fileno(), 1, at)
            os.pwrite(data.fileno(), bytes([good[0] ^ bit]), at)

    def _restore(self) -> None:
        """Make the build that is flipped the published one, and the only one, again."""
        self.kb.current.unlink()
        self.kb.current.symlink_to(Path("builds") / self.build.name)
        for other in self.kb.builds.iterdir():
            if other != self.build:
                shutil.rmtree(other)


def broken(counts: Counter[tuple[str, str]]) -> list[str]:
    """Return the promises that were broken."""
    return [
        f"{who}: {what}, {count} times"
        for (who, what), count in sorted(counts.items())
        if (who in ("verify", "quick") and what != "refused")
        or what.startswith(("RAISED", "CRASHED", "SIG", "exit"))
        or (what.startswith("written") and not what.endswith("refused"))
    ]
