"""What the benches share: WordNet's files, keys to look up, text. Made when asked for, never timed.

The work folder holds:

    nltk_data/corpora/wordnet/   the WordNet files as nltk wants them
    keys.json                    keys and lemmas, in random order
    wordnet.xml                  the same WordNet as WN-LMF
    wn/                          wn's data folder, with that file added
    records/                     a bare LMDB environment with one record a synset
    knowbert/                    what KnowBert's extraction writes, where it is run
    home/                        kgkit's home, with WordNet built
    spacy-kb/                    spaCy's KB of the same
    text.txt                     the text, one document a line
"""

import lzma
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import call, run

# The lexicographer files by number, as lexnames(5WN) lists them; the last column of that file is the
# number of the part of speech.
LEXICOGRAPHER_FILES = """
    adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body
    noun.cognition noun.communication noun.event noun.feeling noun.food noun.group noun.location
    noun.motive noun.object noun.person noun.phenomenon noun.plant noun.possession noun.process
    noun.quantity noun.relation noun.shape noun.state noun.substance noun.time verb.body verb.change
    verb.cognition verb.communication verb.competition verb.consumption verb.contact verb.creation
    verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl
"""
PART_OF_SPEECH_NUMBERS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Where the inputs come from and where they are kept.

    Attributes:
        wordnet: folder of the WordNet database files.
        data: folder with `wikitext2/valid.txt.xz` and `test.txt.xz`.
        work: folder for everything made on the way.
        knowbert: a checkout of allenai/kb, to run its own files; None: what needs them is not run.
        repeat: how many times each thing is measured.
    """

    wordnet: Path
    data: Path
    work: Path
    knowbert: Path | None
    repeat: int

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which nltk, wn and kgkit find their data here."""
        return {
            "NLTK_DATA": str(self.work / "nltk_data"),
            "WN_DATA_DIR": str(self.work / "wn"),
            "KGKIT_HOME": str(self.work / "home"),
        }

    def nltk_data(self) -> Path:
        """Copy the WordNet files, with the two that nltk asks for and Debian does not ship.

        `index.sense` may be empty: nltk matches versions of WordNet with it, not asked for here.
        """
        folder = self.work / "nltk_data" / "corpora" / "wordnet"
        if not (folder / "index.sense").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for path in self.wordnet.iterdir():
                if path.is_file():
                    shutil.copyfile(path, folder / path.name)
            lines = [
                f"{number:02d}\t{name}\t{PART_OF_SPEECH_NUMBERS[name.partition('.')[0]]}\n"
                for number, name in enumerate(LEXICOGRAPHER_FILES.split())
            ]
            (folder / "lexnames").write_text("".join(lines), encoding="ascii")
            (folder / "index.sense").touch()
        return folder

    def keys(self) -> Path:
        """Write the keys and lemmas that the look-ups ask for."""
        self.nltk_data()
        return self._ensure("keys.json", "benchmarks.peers.nltk_wordnet:write_keys")

    def lmf(self) -> Path:
        """Write WordNet as WN-LMF."""
        return self._ensure("wordnet.xml", "benchmarks.peers.wn_wordnet:write_lmf", wordnet=self.wordnet)

    def wn_data(self) -> Path:
        """Add the WN-LMF file to wn's database."""
        lmf = self.lmf()
        return self._ensure("wn", "benchmarks.peers.wn_wordnet:add", lmf=lmf)

    def records(self) -> Path:
        """Write one record a synset into a bare LMDB environment."""
        self.nltk_data()
        return self._ensure("records", "benchmarks.peers.bare_lmdb:write_records")

    def entities(self) -> Path:
        """Write KnowBert's table of entities with its own extraction."""
        self.nltk_data()
        path = self.work / "knowbert" / "entities.jsonl"
        path.parent.mkdir(exist_ok=True)
        relations = path.with_name("relations.tsv")
        extraction = "benchmarks.peers.knowbert:extract"
        return self._ensure(
            "knowbert/entities.jsonl",
            extraction,
            argument="entities",
            checkout=self.knowbert,
            relations=relations,
        )

    def home(self) -> Path:
        """Build WordNet with kgkit."""
        return self._ensure("home", "benchmarks.own:build", wordnet=self.wordnet)

    def spacy_kb(self) -> Path:
        """Write that WordNet as a KB of spaCy's."""
        return self._ensure("spacy-kb", "benchmarks.peers.spacy_kb:write", home=self.home())

    def text(self) -> Path:
        """Write the text, one document a line."""
        path = self.work / "text.txt"
        if not path.exists():
            with path.open("w", encoding="utf-8") as out:
                for part in ("valid", "test"):
                    with lzma.open(
                        self.data / "wikitext2" / f"{part}.txt.xz", "rt", encoding="utf-8"
                    ) as text:
                        out.writelines(line.strip() + "\n" for line in text if line.strip())
        return path

    def _ensure(self, name: str, function: str, argument: str = "out", **arguments: object) -> Path:
        """Return the path *name* in the work folder; *function* makes it, with the path as its *argument*."""
        path = self.work / name
        if not path.exists():
            print(f"making {name}", file=sys.stderr)
            run(call(name, function, {argument: path, **arguments}, self.environment))
        return path
