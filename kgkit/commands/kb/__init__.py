"""`kgkit build-kb` and `kgkit kb …`: knowledge bases, a file per verb."""

from typing import ClassVar

from kgkit.commands.groups import CommandGroup


class KBCommands(CommandGroup):
    """Manage the knowledge bases on this machine."""

    PATH = "kgkit kb"
    PLACES: ClassVar = {
        "list": "kb.list_kbs:list_kbs", "info": "kb.info:info", "check": "kb.check:check",
        "add": "kb.add:add",
        "default": "kb.default:default", "edit": "kb.edit:edit", "diff": "kb.diff:diff",
        "export": "kb.export:export", "import": "kb.import_kb:import_kb", "verify": "kb.verify:verify",
        "rm": "kb.rm:rm", "prune": "kb.prune:prune", "publish": "kb.publish:publish",
    }  # fmt: skip
