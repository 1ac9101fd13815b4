"""`kgkit evaluate …`: a file per kind of data set."""

from typing import ClassVar

from kgkit.commands.groups import CommandGroup


class EvaluateCommands(CommandGroup):
    """Score a model on a data set."""

    PATH = "kgkit evaluate"
    PLACES: ClassVar = {
        "cloze": "evaluate.cloze:cloze", "el": "evaluate.el:el", "ner": "evaluate.ner:ner",
        "ppl": "evaluate.language:ppl", "task": "evaluate.task:task", "wsd": "evaluate.wsd:wsd",
    }  # fmt: skip
