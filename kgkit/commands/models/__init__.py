"""`kgkit models …`: trained models, a file per verb."""

from typing import ClassVar

from kgkit.commands.groups import CommandGroup


class ModelCommands(CommandGroup):
    """Look after the trained models on this machine."""

    PATH = "kgkit models"
    PLACES: ClassVar = {
        "list": "models.list_models:list_models", "info": "models.info:info",
        "verify": "models.verify:verify", "rm": "models.rm:rm",
    }  # fmt: skip
