"""Word vectors to measure with: Wikipedia2Vec on what little text is at hand.

    python -m benchmarks.word_vectors OUT_DIR

The text is the directions of the recipes and the samples of Wikipedia, of the shared data; neither it nor
the vectors may be passed on. Each recipe is written as a page, as wikipedia2vec reads nothing else. The
Python that runs this must have wikipedia2vec (`KGKIT_BENCH_WIKIPEDIA2VEC` names it to the benches).
"""

import argparse
import bz2
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.harness import REPOSITORY

WIKIPEDIA = "enwiki-pages-articles-sample.xml.bz2", "enwiki-table-markup.xml.bz2"


def recipes(data: Path) -> Iterator[tuple[str, str]]:
    """Yield the title and the directions of every recipe of the training part."""
    path = data / "recipe" / "corpus" / "recipes_train.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            recipe = json.loads(line)
            yield f"Recipe {recipe['id']}", "\n\n".join(recipe["directions"])


def write_dump(data: Path, out: Path) -> None:
    """Write both corpora as one dump of MediaWiki."""
    with bz2.open(out, "wt", encoding="utf-8", compresslevel=1) as dump:
        dump.write('<mediawiki xml:lang="en">\n')
        for name in WIKIPEDIA:
            text = bz2.decompress((data / "wikipedia" / name).read_bytes()).decode("utf-8")
            dump.write(text[text.index("<page>") : text.rindex("</page>") + len("</page>")] + "\n")
        for title, directions in recipes(data):
            page = f"<revision><text>{escape(directions)}</text></revision>"
            dump.write(f"<page><title>{escape(title)}</title><ns>0</ns>{page}</page>\n")
        dump.write("</mediawiki>\n")


def make(data: str, out: str, width: int = 384, iterations: int = 5, workers: int = 1) -> str:
    """Train, unless it is done; return the file of the vectors in the format of word2vec."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    dump, model, text = folder / "text.xml.bz2", folder / "model", folder / "vectors.txt"
    if text.exists():
        return str(text)
    if not dump.exists():
        write_dump(Path(data), folder / "text.part")
        (folder / "text.part").replace(dump)
    program = Path(sys.executable).with_name("wikipedia2vec")
    settings = {
        "dim-size": width, "iteration": iterations, "pool-size": workers, "min-word-count": 5,
        "min-entity-count": 1,
    }  # fmt: skip
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    subprocess.run([program, "train", *options, "--lowercase", dump, model], check=True)
    subprocess.run([program, "save-text", "--out-format", "word2vec", model, text], check=True)
    return str(text)


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.word_vectors", description="Word vectors.")
    parser.add_argument("out", metavar="OUT_DIR", help="folder for all that is made")
    parser.add_argument("--data", default=str(REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    print(make(chosen.data, chosen.out, chosen.width, chosen.iterations, chosen.workers))


if __name__ == "__main__":
    main()
