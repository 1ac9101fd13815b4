"""The card of a trained model, in Markdown: what it is, scores, data, licence, the lines that use it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kgkit.models.kinds import Kind
from kgkit.models.manifest import ModelManifest

CARD: Final = "README.md"
"""The file of a model's folder that has its card; its manifest does not list it: people add to it."""

LICENCE_UNKNOWN: Final = "not stated. Ask whoever shared it; the licences of its data may apply to it too."


def model_card(
    kind: Kind[Any], manifest: ModelManifest, *, licence: str = "", scores: Sequence[str] = ()
) -> str:
    """Return the card of a model.

    Args:
        kind: kind of the model.
        manifest: manifest of the model.
        licence: licence of the model; empty if it is not known.
        scores: sentences on how well it does, beside what was measured while it was trained.
    """
    return "\n".join([*_lines(kind, manifest, licence, scores), ""])


def write_card(folder: Path, kind: Kind[Any], manifest: ModelManifest) -> None:
    """Write the card of a model into its folder, unless its kind has written another."""
    path = folder / CARD
    if not path.exists():
        path.write_text(model_card(kind, manifest), encoding="utf-8")


def _lines(kind: Kind[Any], manifest: ModelManifest, licence: str, scores: Sequence[str]) -> Iterator[str]:
    task = f", for the task {manifest.task}" if manifest.task else ""
    yield from (f"# {manifest.name}", "", f"`{manifest.name}` is {kind.called(manifest)}{task}.", "")
    needs = [f"the knowledge base `{kb}` (build {build})" for kb, build in manifest.needs.kbs.items()]
    needs += [f"the vectors `{vectors}`" for vectors in manifest.needs.vectors]
    needs += [f"the model `{model}`" for model in (manifest.needs.linker, *manifest.needs.models) if model]
    yield from (f"It needs {', '.join(needs)}.", "") if needs else ()
    if manifest.encoder:
        yield from (f"Its encoder is, or began as, `{file_name(manifest.encoder)}`.", "")
    yield from ("## Use", "", _sentence(kind.used(manifest)), "", "```python", "import kgkit", "")
    yield from (f'kgkit.open_model("{manifest.name}")', "```", "", "## Scores", "")
    figures = [*scores, *(f"- {name}: {value}" for name, value in _flat(manifest.results))]
    yield from figures or ("None were measured while it was trained.",)
    yield from ("", "## Data", "")
    yield from [f"- `{file_name(name)}`, SHA-256 `{digest}`" for name, digest in manifest.data.items()] or (
        "Not stated.",
    )
    yield from ("", "## Licence", "", _sentence(licence or LICENCE_UNKNOWN))
    if manifest.kgkit_version:
        yield from ("", f"Trained by kgkit {manifest.kgkit_version}, {manifest.created[:10]}.")


def file_name(path: str) -> str:
    """Return the last part of an absolute path, which says nothing of somebody's disk; else what it is."""
    absolute = path.startswith(("/", "\\", "~")) or path[1:2] == ":"
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] if absolute else path


def _sentence(text: str) -> str:
    """Return *text* with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _flat(results: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values of nested figures; curves and other lists are left out."""
    for name, value in results.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, float):
            yield f"{before}{name}", f"{value:.4g}"
        elif isinstance(value, int | str):
            yield f"{before}{name}", str(value)
