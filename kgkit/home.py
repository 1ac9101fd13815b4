"""Where things lie on disk.

    $KGKIT_HOME/                  else the platform's data directory
      kbs/NAME/builds/BUILD/      one immutable build: data.mdb, manifest.json
      kbs/NAME/current            symbolic link to the published build
      kbs/NAME/lock               held by the process that is building or removing NAME
      kbs/NAME/vectors/VECTORS/   matrices with a row for each entity, see `kgkit.vectors`
      models/NAME/                a trained model, see `kgkit.models.folder`
      runs/                       what trainings that run, or were stopped, have done
      default-kb                  name of the knowledge base that is taken where none is named
      catalog.db                  an index over all this, see `kgkit.catalog`
      cache/                      downloads, encoded words, how exactly encoders multiply, what stopped builds
                                  have read, and the name of the knowledge base that was used last; safe to
                                  delete

Nothing here writes to the disk.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from kgkit.errors import NotThere, UsageError
from kgkit.versions import current_version

CATALOG_URL: Final = "KGKIT_CATALOG_URL"
"""The variable that names another database for the catalog than the one in the home."""

DEFAULT_KB: Final = "KGKIT_KB"
"""The variable that names the knowledge base that is taken where none is named."""

HOME: Final = "KGKIT_HOME"
"""The variable that names the home."""

_BUILD_MANIFEST: Final = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_name(name: str) -> bool:
    """Say whether *name* can be the name of a folder everywhere, and so of a KB."""
    return _NAME.fullmatch(name) is not None


def explicit_path(name: str | os.PathLike[str]) -> Path | None:
    """Return the path that somebody has written where a name or a path is expected; None if it is a name.

    A string is a path if it has a slash in it, or begins with `.` or `~`: a folder in the current directory
    is `./NAME`. Any other `os.PathLike` is a path.
    """
    if isinstance(name, str) and "/" not in name and not name.startswith((".", "~")):
        return None
    path = Path(name)
    with suppress(RuntimeError):  # of a user that is not there
        path = path.expanduser()
    return path


def here_hint(name: str) -> str:
    """Return how to name what lies in the current directory under a name, as a sentence; empty if nothing."""
    return f"for {name} in the current directory write ./{name}" if name and os.path.lexists(name) else ""


@dataclass(frozen=True)
class Home:
    """The folder that holds everything kgkit has on disk."""

    path: Path

    named: ClassVar[bool] = False
    """Whether `--home` names the home of this process; the commands that errors propose then name it too."""

    @classmethod
    def find(cls, path: str | os.PathLike[str] | None = None) -> "Home":
        """Return the home named by *path*, else by `KGKIT_HOME`, else the platform's."""
        chosen = path if path is not None else os.environ.get(HOME)
        if chosen:
            return cls(Path(chosen).expanduser().absolute())
        import platformdirs  # here: an import of 10 ms that most calls can do without

        return cls(platformdirs.user_data_path("kgkit"))

    @property
    def cache(self) -> Path:
        """Downloads and other things that can be had again."""
        return self.path / "cache"

    @property
    def catalog(self) -> Path:
        """The catalog, unless `CATALOG_URL` names another."""
        return self.path / "catalog.db"

    @property
    def default_file(self) -> Path:
        """File with the name of the default knowledge base, which need not exist."""
        return self.path / "default-kb"

    @property
    def default_name(self) -> str:
        """Name of the default knowledge base; empty where none is set."""
        return _line_of(self.default_file)

    @property
    def chosen_default(self) -> str:
        """Name of the knowledge base that `DEFAULT_KB` names, or that is set as the default; else empty."""
        return os.environ.get(DEFAULT_KB, "") or self.default_name

    @property
    def recent_file(self) -> Path:
        """File with the name of the knowledge base that a command used last, which need not exist."""
        return self.cache / "recent-kb"

    @property
    def models(self) -> Path:
        """Trained models, a folder each; `kgkit.models.folder` tells where the files of one lie."""
        return self.path / "models"

    def kb(self, name: str) -> "KBHome":
        """Return the folder of the KB *name* (which need not exist).

        Raises:
            UsageError: if *name* cannot be a folder name everywhere.
        """
        if not is_name(name):
            raise UsageError(
                f"{name!r} cannot name a knowledge base: use letters, digits, '.', '_' and '-', "
                "64 at most, starting with a letter or digit"
            )
        return KBHome(name, self.path / "kbs" / name)

    def kbs(self) -> list["KBHome"]:
        """Return the KBs that have a published build, by name."""
        root = self.path / "kbs"
        paths = sorted(root.iterdir()) if root.is_dir() else []
        kbs = [KBHome(path.name, path) for path in paths if is_name(path.name)]
        return [kb for kb in kbs if kb.current.is_dir() or kb.published() is not None]

    def unfinished(self) -> list["KBHome"]:
        """Return the KBs of which builds that were stopped have read something, by name."""
        root = self.cache / "parts"
        names = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
        return [self.kb(name) for name in names if is_name(name)]

    def default_kb(self, *, recent: bool = False) -> "DefaultKB":
        """Return the knowledge base that is taken where none is named.

        That is the one that `KGKIT_KB` names, else what `kgkit kb default` has set, else the only one.

        Args:
            recent: whether of several, of which none is the default, the one used last is taken.

        Raises:
            NotThere: if there is none, or the default is not there.
            UsageError: if there are several, and none of them is the default.
        """
        names = [kb.name for kb in self.kbs()]
        chosen = os.environ.get(DEFAULT_KB, ""), self.default_name
        for name, reason in zip(chosen, (f"${DEFAULT_KB}", "the default"), strict=True):
            if name and name.partition("@")[0] not in names:
                raise NotThere(
                    f"the knowledge base {name}, {reason}, is not in {self.path}; there are: "
                    f"{', '.join(names) or 'none'}. Name another one, or set it by `kgkit kb default NAME`"
                )
            if name:
                return DefaultKB(name, reason)
        if len(names) == 1:
            return DefaultKB(names[0], "")
        if not names:
            raise NotThere(
                f"no knowledge base in {self.path}: build one, for example with `kgkit build-kb wordnet`"
            )
        if recent and (name := _line_of(self.recent_file)) in names:
            return DefaultKB(name, "the one used last")
        raise UsageError(
            f"which knowledge base? In {self.path} there are {', '.join(names)}: name one, or set the "
            f"default with `kgkit kb default NAME` or ${DEFAULT_KB}"
        )


class DefaultKB(NamedTuple):
    """The knowledge base that is taken where none is named, and why; no reason for the only one."""

    name: str
    reason: str


def _line_of(path: Path) -> str:
    """Return the text of a small file; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


@dataclass(frozen=True)
class KBHome:
    """The folder of one knowledge base."""

    name: str
    path: Path

    @property
    def builds(self) -> Path:
        """Folder with one folder for each build."""
        return self.path / "builds"

    @property
    def current(self) -> Path:
        """Symbolic link to the published build; it does not exist before the first one."""
        return self.path / "current"

    @property
    def unfinished(self) -> Path:
        """What builds that were stopped have read."""
        return self.path.parent.parent / "cache" / "parts" / self.name

    @property
    def vectors(self) -> Path:
        """Folder of the KB's vectors, one folder inside it for each name."""
        return self.path / "vectors"

    @property
    def unfinished_vectors(self) -> Path:
        """What jobs that make vectors and were stopped have done."""
        return self.path.parent.parent / "cache" / "vectors" / self.name

    @property
    def lock(self) -> Path:
        """Lock file that whoever publishes or removes builds holds."""
        return self.path / "lock"

    def published(self) -> str | None:
        """Return the name of the published build, None if there is none."""
        build = current_version(self.path)
        if build is None:
            return None
        return build.name if build.parent != self.path else self._build_like(build)

    def _build_like(self, copied: Path) -> str | None:
        """Return the build that *copied*, made of `current` by a copy that follows links, is like."""
        try:
            content = (copied / _BUILD_MANIFEST).read_bytes()
        except OSError:
            return None
        for build in self.build_names():
            with suppress(OSError):
                if (self.builds / build / _BUILD_MANIFEST).read_bytes() == content:
                    return build
        return None

    def build_names(self) -> list[str]:
        """Return the builds on disk, oldest first; unfinished ones are not among them."""
        try:
            builds = [path for path in self.builds.iterdir() if not path.name.startswith(".")]
        except FileNotFoundError:
            return []
        ages = []
        for path in builds:
            with suppress(FileNotFoundError):  # removed a moment ago
                ages.append((path.stat().st_mtime_ns, path.name))
        return [name for _, name in sorted(ages)]
