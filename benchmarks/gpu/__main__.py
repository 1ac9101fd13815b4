"""The command: measure the lines in their order, as long as the budget lasts, and write the page."""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.gpu.lines import Line, Row, Setting, last_line, registered_lines, rows_of, table_of
from benchmarks.harness import REPOSITORY, JobFailed, call, run
from benchmarks.report import processor, versions

RESULTS: Final = Path(__file__).parent.parent / "RESULTS.md"
BEGIN: Final = "<!-- what `python -m benchmarks.gpu --write` writes begins -->\n"
END: Final = "<!-- what `python -m benchmarks.gpu --write` writes ends here -->\n"
BUDGET: Final = 540.0
LEAST: Final = 20.0  # seconds under which no line is begun
RESERVE: Final = 5.0  # seconds to write the page


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    names = [each.name for each in registered_lines()]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument(
        "--device", default="cuda", help="torch's name of it; cpu with --small tries the lines"
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes: figures mean nothing")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help=f"seconds for all (default: {BUDGET:.0f})"
    )
    parser.add_argument(
        "--only", action="append", default=[], choices=names, metavar="NAME",
        help=f"a line, or several: {', '.join(names)}",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the lines and what each lacks")
    parser.add_argument("--home", default=os.environ.get("KGKIT_HOME", ""), help="folder of knowledge bases")
    parser.add_argument(
        "--data", default=str(REPOSITORY.parent / "shared" / "data"), help="folder of data sets, if any"
    )
    parser.add_argument("--wordnet", default="", help="folder of WordNet's files, where no home has it")
    parser.add_argument("--scratch", type=Path, help="folder for 20 GB on the way (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="folder for gpu.md and gpu.json, written line by line")
    parser.add_argument("--write", action="store_true", help="write the part of benchmarks/RESULTS.md")
    chosen = parser.parse_args(argv)
    if chosen.write and (chosen.only or chosen.small):
        parser.error("--write replaces all of the part: it goes with neither --only nor --small")
    for name in ("home", "data", "wordnet"):  # the measured processes run elsewhere
        folder = getattr(chosen, name)
        setattr(chosen, name, folder and str(Path(folder).resolve()))
    return chosen


# -- in a process of its own ------------------------------------------------


def machine(device: str) -> dict[str, str]:
    """Return the name of the device, and the versions of torch and CUDA.

    Raises:
        SystemExit: if torch does not find the device.
    """
    import torch

    description = {"torch": torch.__version__, "device": "the CPU"}
    if device != "cpu":
        if not torch.cuda.is_available():
            raise SystemExit(
                f"torch {torch.__version__} finds no GPU: install a build of torch with CUDA, or try the "
                "lines with --small --device cpu"
            )
        about = torch.cuda.get_device_properties(device)
        description["device"] = f"{about.name}, {about.total_memory / 2**30:.0f} GiB"
        description["CUDA"] = str(torch.version.cuda)
    return description


# -- the page ---------------------------------------------------------------


def page(
    about: dict[str, str],
    setting: Setting,
    results: Sequence[tuple[Line, Sequence[Row]]],
    skipped: Sequence[str],
) -> str:
    """Return the part of RESULTS.md."""
    small = "\n**Tiny sizes: these figures mean nothing.**\n" if setting.small else ""
    head = f"""# Benchmarks on a GPU

Written by `python -m benchmarks.gpu` on {datetime.date.today().isoformat()}{_commit()}; do not edit.
{small}
- Device: {about["device"]}; CUDA {about.get("CUDA", "none")}. Host: {os.cpu_count()} cores, {processor()}.
- {versions()}.
- Each line in a process of its own, the processor's controls with all cores. `over control` is the figure
  divided by the control's: of `ms` and `s` less is better, of `…/s` more. MB are 10⁶ bytes.
"""
    if skipped:
        head += f"- Left out, for lack of time: {', '.join(skipped)}.\n"
    return "\n".join([head, *(table_of(line, rows).markdown() for line, rows in results)])


def _commit() -> str:
    """Return which commit was measured, if git knows."""
    try:
        completed = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f", commit {completed.stdout.strip()}" if completed.returncode == 0 else ""


def with_part(results: str, part: str) -> str:
    """Return RESULTS.md with another part between its markers, which are added at its end if need be."""
    before, begin, remainder = results.partition(BEGIN)
    _, _, after = remainder.partition(END)
    if not begin:
        before = results.rstrip("\n") + "\n\n"
    return f"{before}{BEGIN}\n{part}\n{END}{after}"


def keep(chosen: argparse.Namespace, written: str, results: Sequence[tuple[Line, Sequence[Row]]]) -> None:
    """Write what has been measured so far."""
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "gpu.md").write_text(written, encoding="utf-8")
        figures: Any = {line.name: [asdict(row) for row in rows] for line, rows in results}
        (chosen.out / "gpu.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if chosen.write:
        RESULTS.write_text(with_part(RESULTS.read_text(encoding="utf-8"), written), encoding="utf-8")


# -- the command ------------------------------------------------------------


def listing(lines: Sequence[Line]) -> str:
    """Return a line of text for each line, with what it needs and lacks."""
    rows = [
        f"{each.name:10} {each.limit:4.0f} s  {each.title}; needs {', '.join(each.needs)}"
        + (f" (not installed: {', '.join(each.missing())})" if each.missing() else "")
        for each in lines
    ]
    return "\n".join(rows)


def measured(
    lines: Sequence[Line], chosen: argparse.Namespace, scratch: Path, deadline: float
) -> tuple[str, list[tuple[Line, list[Row]]]]:
    """Measure lines until the deadline, and return the page and the rows."""
    looked = call("machine", "benchmarks.gpu.__main__:machine", {"device": chosen.device}, limit=120.0)
    about: dict[str, str] = run(looked).result
    setting = Setting(
        device=chosen.device,
        small=chosen.small,
        scratch=str(scratch),
        home=chosen.home,
        data=chosen.data,
        wordnet=chosen.wordnet,
    )
    missing = prepare(setting) if any(each.stand_ins for each in lines) else ""
    results: list[tuple[Line, list[Row]]] = []
    skipped: list[str] = []
    written = page(about, setting, results, skipped)
    for each in lines:
        remaining = deadline - time.monotonic() - RESERVE
        if remaining < min(LEAST, each.limit):
            skipped.append(each.name)
            written = page(about, setting, results, skipped)
            continue
        began = time.monotonic()
        if each.stand_ins and missing:
            rows = [Row(what=each.title, note=f"not measured: no stand-ins: {missing}")]
        else:
            rows = rows_of(each, setting, min(each.limit, remaining))
        results.append((each, rows))
        written = page(about, setting, results, skipped)
        keep(chosen, written, results)
        print(f"  {each.name}: {time.monotonic() - began:.0f} s, {len(rows)} rows", file=sys.stderr)
    keep(chosen, written, results)
    return written, results


def prepare(setting: Setting) -> str:
    """Make the stand-ins; return why there are none, if so."""
    try:
        run(call("stand-ins", "benchmarks.gpu.stand_ins:make", {"setting": asdict(setting)}, limit=120.0))
    except JobFailed as error:
        return last_line(str(error))
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the lines of the command line, and print the page; 1 if nothing could be measured."""
    deadline = time.monotonic()
    chosen = arguments(argv)
    deadline += chosen.budget
    lines = [each for each in registered_lines() if not chosen.only or each.name in chosen.only]
    if chosen.list:
        print(listing(lines))
        return 0
    if chosen.scratch is not None:
        chosen.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as scratch:
        try:
            written, results = measured(lines, chosen, Path(scratch).resolve(), deadline)
        except JobFailed as error:
            print(last_line(str(error)), file=sys.stderr)
            return 1
    print(written)
    return 0 if any(row.value is not None for _, rows in results for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
