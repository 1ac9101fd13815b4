"""What a spaCy pipeline keeps of a knowledge base: the names of its build, and of the model and the vectors.

A pipeline on disk holds no copy of a knowledge base, only this record, as JSON:

    {"configured": "wordnet", "kb": "wordnet@8d62a971e2e7", "model": "wsd-minilm", "vectors": null}

Where the pipeline is loaded, the knowledge base and the model have to be in the home: `find_requirements`
says in one error what is missing there. Nothing here imports spaCy.
"""

from pathlib import Path
from typing import Final

import msgspec

from kgkit.errors import DamagedModel, NotThere, UnknownName
from kgkit.home import Home
from kgkit.models.folder import AUTO, BUILT_IN, find_model_folder
from kgkit.store import find_build
from kgkit.vectors import find_vectors

FILE: Final = "kgkit.json"
"""Name of the file with the record, in the folder of a component."""


class PipelineRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a component of a spaCy pipeline keeps of a knowledge base.

    Attributes:
        configured: knowledge base that the configuration names, as it names it; None for the default.
        kb: `NAME@BUILD`.
        model: name of the model that scores candidates; None where there is none.
        vectors: name of the entities' vectors; None for the model's own, or the only ones.
    """

    configured: str | None
    kb: str
    model: str | None = None
    vectors: str | None = None

    def encode(self) -> bytes:
        """Return the record as JSON."""
        return msgspec.json.encode(self)

    def write(self, folder: Path) -> None:
        """Write the record into a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_bytes(self.encode() + b"\n")

    def build_for(self, configured: str | None) -> str | None:
        """Return `NAME@BUILD` for a component whose configuration names a knowledge base.

        A configuration that names a build, or another knowledge base than the one of the record, goes before
        the record.

        Returns:
            The build of the record; None where the configuration names something else.
        """
        return self.kb if configured == self.configured else None


def decode_record(data: bytes, source: str) -> PipelineRecord:
    """Return the record that *data* holds.

    Args:
        data: JSON that `PipelineRecord.encode` has made.
        source: description of where it is from, for the error.

    Raises:
        DamagedModel: if it is none.
    """
    try:
        return msgspec.json.decode(data, type=PipelineRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedModel(
            f"{source} is no record of a knowledge base: {error}; save the pipeline again"
        ) from error


def read_record(folder: Path) -> PipelineRecord:
    """Return the record in the folder of a component.

    Raises:
        DamagedModel: if there is none, or it cannot be read.
    """
    path = folder / FILE
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedModel(f"{path} cannot be read: {error.strerror}; save the pipeline again") from error
    return decode_record(data, str(path))


def find_requirements(
    owner: str, kb: str | None, *, model: str | None = None, vectors: str | None = None
) -> str:
    """Return `NAME@BUILD` of a knowledge base, after a look whether all that is needed beside it is there.

    Args:
        owner: name of the component, for the error.
        kb: `NAME`, `NAME@BUILD`, or None for the default or only one.
        model: name or folder of a model; `auto`: that of `$KGKIT_MODEL`, if it names one; None: none is
            needed.
        vectors: name of vectors of the knowledge base; None: those of the model.

    Raises:
        NotThere: if something is missing; names all of it.
        UsageError: if no knowledge base is named, there are several, and none of them is the default.
    """
    from kgkit.linking.auto import named_model

    if model == AUTO:
        model = named_model()
    home = Home.find()
    name = home.default_kb().name if kb is None else kb
    problems: list[str] = []
    build = None
    try:
        build = find_build(home, name)
    except NotThere as error:
        problems.append(str(error))
    if model is not None and model not in BUILT_IN:
        try:
            find_model_folder(model, home, "linker")
        except (NotThere, UnknownName) as error:
            problems.append(str(error))
    if vectors is not None and build is not None:
        try:
            find_vectors(home.kb(build.name), vectors)
        except NotThere as error:
            problems.append(str(error))
    if problems or build is None:
        needs = [f"the knowledge base {name}"]
        needs += [f"the model {model}"] if model not in (None, *BUILT_IN) else []
        needs += [f"the vectors {vectors}"] if vectors is not None else []
        raise NotThere(
            f"{owner} needs {' and '.join(needs)}, and not all of it is in {home.path}, "
            f"the folder that the variable KGKIT_HOME can change: {'; '.join(problems)}"
        )
    return f"{build.name}@{build.build}"
