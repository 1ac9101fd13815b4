"""Lines of the linkers: the type `full`, whose encoders are fine-tuned."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.gpu import stand_ins
from benchmarks.gpu.clocks import Pace, peak_memory
from benchmarks.gpu.lines import Row, Setting, attempt, line, reason_of

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

WARM: Final = 2
COUNTED: Final = 16
SECONDS: Final = 30.0
ON_CPU: Final = 15.0

NOTES: Final = """
Steps of the joint training: both encoders and the head, batches of 2,048 word pieces and 64 texts, all texts
of candidates encoded anew four times an epoch. Stand-ins: MiniLM's shape with random weights; 1,500 documents
of 100 words, a quarter of them mentions with three candidates. Steps are counted from the second on: what is
encoded before the first is left out.
"""
SEMCOR_NOTES: Final = """
The joint training of the type `full` on SemCor with WordNet, the texts' encoding with it. Needs SemCor in the
data folder, and a home with WordNet or WordNet's files (`--wordnet`); without the package of MiniLM the
encoder is the stand-in, to which most words are unknown: one piece each.
"""
SPARED: Final = 10.0  # seconds at the end of a line's limit


def train(
    setting: Setting, kb: "KnowledgeBase", files: tuple[Path, Path], name: str, device: str, pace: Pace | None
) -> None:
    """Train a linker of the type `full` for an epoch; *pace* is its callback."""
    from kgkit.training.linkers.fine_tuned import FullConfig
    from kgkit.training.linkers.settings import LinkerTraining
    from kgkit.training.linkers.train import train_linker

    config = FullConfig(epochs=1, head_epochs=1)
    if setting.small:
        config = replace(config, tokens=64, width=16)
    data, gold = files
    training = LinkerTraining(task="wsd", data=(data,), gold=(gold,), type="full", full=config)
    train_linker(kb, name, training, device=device, progress=pace)


@line(
    "linker",
    "The linkers' type `full`: steps a second",
    limit=110,
    order=3,
    notes=NOTES,
    needs=("torch", "transformers", "accelerate", "safetensors", "lmdb"),
    stand_ins=True,
)
def full(setting: Setting) -> Iterator[Row]:
    """Yield steps a second, with and without those that encode all texts, and the same on the CPU."""
    from kgkit.embedding.text import TextConfig, embed_text

    scratch = Path(setting.scratch)
    files = scratch / "x.data.xml", scratch / "x.gold.key.txt"
    encoder = stand_ins.stand_in_encoder(setting, setting.device)
    text = TextConfig(
        encoder=str(encoder.folder), name="text", template="{label}: {description}", device=setting.device
    )
    with stand_ins.open_stand_in(setting) as kb:
        embed_text(kb, text, encoder=encoder)
        last = WARM + setting.size(COUNTED, 2)
        pace = Pace(setting.device, seconds=SECONDS, training=2)
        memory = peak_memory(
            setting.device, lambda: pace.run(lambda: train(setting, kb, files, "a", setting.device, pace))
        )
        note = f"{len(pace.times)} of {pace.total} steps"
        yield Row(
            what=f"{setting.name}, with the texts' encoding", value=pace.rate(1), unit="steps/s",
            memory=memory, note=note,
        )  # fmt: skip
        alone = pace.rate(WARM, last)
        if not setting.on_gpu:
            yield Row(what=f"{setting.name}, without", value=alone, unit="steps/s")
            return
        what = f"{setting.name}, without"

        def with_cpu_control() -> Row:
            slow = Pace("cpu", seconds=ON_CPU, steps=last, training=2)
            slow.run(lambda: train(setting, kb, files, "b", "cpu", slow))
            return Row(
                what=what, value=alone, unit="steps/s", control="CPU", control_value=slow.rate(WARM),
                note=f"steps {WARM + 1} to {last}; CPU: to {len(slow.times)}",
            )  # fmt: skip

        row = attempt(what, with_cpu_control)
        yield row
        if row.value is None:
            yield Row(what=what, value=alone, unit="steps/s")


@line(
    "semcor",
    "The linkers' type `full`: an epoch on SemCor",
    limit=500,
    order=90,
    notes=SEMCOR_NOTES,
    needs=("torch", "transformers", "accelerate", "safetensors", "lmdb"),
    stand_ins=True,
)
def semcor(setting: Setting) -> Iterator[Row]:
    """Yield the seconds of an epoch, measured as far as the time lasts."""
    from kgkit.errors import NotThere

    what, began = "an epoch on SemCor", time.perf_counter()
    folder = Path(setting.data or "no-data") / "semcor"
    files = [next(iter(sorted(folder.glob(each))), None) for each in ("*.data.xml*", "*.gold.key.txt*")]
    data, gold = files
    if setting.small or data is None or gold is None:
        yield Row(what=what, note="not measured: a trial" if setting.small else f"not measured: no {folder}")
        return
    try:
        kb = _wordnet(setting)
    except NotThere as error:
        yield Row(what=what, note=f"not measured: {reason_of(error)}")
        return
    with kb:
        encoder = _with_vectors(setting, kb)
        remaining = setting.limit - (time.perf_counter() - began) - SPARED
        pace = Pace(setting.device, until=time.perf_counter() + remaining, training=2)
        pace.run(lambda: train(setting, kb, (data, gold), "semcor", setting.device, pace))
    ready = pace.times[0] - began if pace.times else remaining
    if len(pace.times) < WARM:
        yield Row(what=what, note=f"not measured: after {ready:.0f} s at: {pace.stage}; see --only")
        return
    yield Row(
        what=what, value=pace.total / pace.rate(1), unit="s",
        note=f"{len(pace.times):,} of {pace.total:,} steps, {pace.rate(1):.1f} a second; {ready:.0f} s came "
        f"before the first, from opening the knowledge base on; {encoder}",
    )  # fmt: skip


def _wordnet(setting: Setting) -> "KnowledgeBase":
    """Open WordNet: a copy of the home's, as a training writes beside it, or one that is built.

    Raises:
        NotThere: if there is neither.
    """
    import kgkit
    from kgkit.errors import NotThere

    home = Path(setting.scratch) / "wordnet-home"
    source = Path(setting.home or "no-home") / "kbs" / "wordnet"
    if source.is_dir():
        shutil.copytree(source, home / "kbs" / "wordnet", symlinks=True)
    elif setting.wordnet:
        kgkit.build_kb("wordnet", setting.wordnet, home=home)
    else:
        raise NotThere("no home with WordNet (--home), and no files of it (--wordnet)")
    return kgkit.open_kb("wordnet", home=home)


def _with_vectors(setting: Setting, kb: "KnowledgeBase") -> str:
    """Make vectors of the texts, if there are none, and return the name of their encoder."""
    from kgkit.embedding.text import TextConfig, embed_text
    from kgkit.encoder import Encoder
    from kgkit.encoder.finding import find_in_package
    from kgkit.errors import NotThere

    try:
        return str(kb.vectors("text").manifest.config["encoder"])
    except NotThere:
        pass
    if find_in_package(stand_ins.ENCODER):
        encoder = Encoder.load(stand_ins.ENCODER, device=setting.device)
        name = path = stand_ins.ENCODER
    else:
        encoder = stand_ins.stand_in_encoder(setting, setting.device)
        name, path = "the stand-in encoder", str(encoder.folder)
    embed_text(kb, TextConfig(encoder=path, name="text", device=setting.device), encoder=encoder)
    return name
