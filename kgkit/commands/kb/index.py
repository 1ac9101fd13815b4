"""`kgkit kb index`: the index of similar surfaces for a build that was made without it."""

from kgkit.commands.messages import Messages
from kgkit.commands.options import KBArgument, chosen_kb


def index(name: KBArgument = None) -> None:
    """Index the surfaces of a knowledge base that was built by an older kgkit.

    `kgkit reconcile` needs the index. Newer builds have it; the data and the name of the build stay as they
    are.
    """
    from kgkit.building.indexing import index_kb

    chosen, messages = chosen_kb(name), Messages()
    with messages.progress(f"indexing the surfaces of {chosen}"):
        build, is_new = index_kb(chosen)
    state = "has an index of its surfaces now" if is_new else "has an index of its surfaces already"
    messages.write(f"{build.name}@{build.build} {state}")
