"""The tree of commands, and how their errors are reported.

    0    done                              3    a KB, model or data set that is not there
    1    failed                            130  interrupted
    143  terminated: it got SIGTERM
    2    the command line is wrong

Where the reader closes the pipe, nothing is written and the code is 0.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer

from kgkit.commands.examples import epilog
from kgkit.commands.groups import CommandGroup
from kgkit.commands.messages import Messages, report, report_usage, write_line
from kgkit.commands.options import flag
from kgkit.commands.output import discard
from kgkit.errors import KgkitError

ENDED: Final = {130: "interrupted", 143: "terminated"}
"""What is written where a signal has ended the command, by the exit code."""

_PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "Knowledge bases": {
        "build-kb": "kb.build:build_kb", "kb": "kb:KBCommands", "show": "show:show", "path": "path:path",
        "candidates": "candidates:candidates",
    },
    "Texts": {
        "link": "link:link", "tag": "tag:tag", "reconcile": "reconcile:reconcile",
        "predict": "predict:predict", "tree": "tree:tree",
    },
    "Vectors": {
        "embed": "embed:embed", "index": "index:index", "nearest": "nearest:nearest", "align": "align:align",
        "project": "project:project", "vectors": "vectors:VectorCommands",
    },
    "Models": {
        "models": "models:ModelCommands", "train": "train:TrainCommands",
        "evaluate": "evaluate:EvaluateCommands",
    },
    "Service": {"serve": "serve:serve", "mcp": "mcp:mcp"},
    "Sharing": {"pack": "pack:pack", "unpack": "unpack:unpack"},
    "Disk": {"du": "storage:du", "clean": "storage:clean"},
}  # fmt: skip
"""Places of the commands, under the titles that the help has them under."""


class Commands(CommandGroup):
    """The group at the root: every error of every command passes through it."""

    PATH = "kgkit"
    PLACES: ClassVar = {name: place for commands in _PANELS.values() for name, place in commands.items()}
    PANELS: ClassVar = {name: title for title, commands in _PANELS.items() for name in commands}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; the options of every command may stand anywhere before `--`."""
        end = args.index("--") if "--" in args else len(args)
        of_all, rest, words = list[str](), list[str](), iter(args[:end])
        for word in words:
            if word in ("--quiet", "-q") or word.startswith("--home="):
                of_all.append(word)
            elif word == "--home":
                of_all += [word, *islice(words, 1)]
            else:
                rest.append(word)
        if of_all[-1:] == ["--home"]:
            return super().parse_args(ctx, of_all)  # an error: it has no value
        if sum(word.startswith("--home") for word in of_all) > 1:
            raise typer.BadParameter("--home: given more than once, and takes one value")
        return super().parse_args(ctx, [*of_all, *rest, *args[end:]])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error of kgkit or the disk becomes one line and an exit code."""
        try:
            super().invoke(ctx)
        except BrokenPipeError:
            discard()
            raise typer.Exit(0) from None
        except (KgkitError, OSError) as error:
            raise typer.Exit(report(error)) from error
        except KeyboardInterrupt as error:
            if (code := getattr(error, "exit_code", 130)) == 130:
                raise
            raise typer.Exit(code) from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra) or 0
        except typer.TyperException as error:
            code = error.exit_code
            # Without arguments the help has been shown: that says it all.
            if type(error).__name__ != "NoArgsIsHelpError":
                context = getattr(error, "ctx", None)
                message = error.format_message().replace(": Value error, ", ": ")
                report_usage(message, context.command_path if context else "kgkit")
        except typer.Abort as error:
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise  # an end of file that nobody expected
            code = 130
        if code in ENDED:
            write_line(ENDED[code])
        sys.exit(_flush(code))


def _flush(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard()
    except OSError as error:
        discard()
        return report(error)
    return code


def _version(requested: bool) -> None:
    if requested:
        from kgkit import __version__

        typer.echo(f"kgkit {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="kgkit",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog=epilog("kgkit"),
)


@app.callback()
def _root(
    ctx: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", metavar="DIR", help="Folder of the data; else $KGKIT_HOME, else the platform's."
        ),
    ] = None,
    quiet: Annotated[
        bool, flag("--quiet", "-q", help="Write no messages and no progress, only results and errors.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, metavar="", help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Knowledge bases on disk: build them, query them, link text to them."""
    ctx.with_resource(_options_of_all(home, quiet))


@contextmanager
def _options_of_all(home: Path | None, quiet: bool) -> Iterator[None]:
    """Let `Home.find` and `Messages` know the options that every command has."""
    from kgkit.home import HOME, Home

    before = os.environ.get(HOME)
    if home is not None:
        os.environ[HOME] = str(home)
    Messages.quiet, Home.named = quiet, home is not None
    try:
        yield
    finally:
        Messages.quiet = Home.named = False
        if home is not None:
            os.environ.pop(HOME)
            os.environ.update({} if before is None else {HOME: before})
