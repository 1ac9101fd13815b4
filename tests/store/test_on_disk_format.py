"""docs/on-disk-format.md describes what is on the disk, byte for byte."""

import re
from collections.abc import Mapping
from typing import ClassVar

import msgspec
import pytest

from kgkit.building.build import build_kb
from kgkit.store import FORMAT, Counts, Manifest, SourceInfo, StoreReader
from kgkit.store.layout import MAX_CLASS_BITS, MAX_KEY, MAX_TOKENS, TABLES, fingerprint
from tests.doc_pages import ROOT, blocks
from tests.toys import ToyBuilder, source_file

PAGE = ROOT / "docs/on-disk-format.md"
TEXT = PAGE.read_text(encoding="utf-8")


class RiverBuilder(ToyBuilder):
    """The builder of the records on the page."""

    inverses: ClassVar[Mapping[str, str]] = {"flows_into": "receives"}
    smoothing: ClassVar[float] = 1.0


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The items of each table of the KB on the page."""
    folder = tmp_path_factory.mktemp("rivers")
    names = {}
    exec(next(block.content for block in blocks(PAGE) if block.kind == "python"), names)
    builder = RiverBuilder(all=names["RECORDS"])
    built = build_kb(builder, source_file(folder), name="rivers", home=folder / "home")
    reader = StoreReader.open(built.path)
    items = {table: dict(reader.items(table)) for table in TABLES}
    reader.close()
    return items


def shown(table: str) -> list[tuple[bytes, bytes]]:
    """Return the items that the section of *table* shows."""
    section = re.split(r"^##+ ", TEXT.split(f"\n### `{table}`\n")[1], flags=re.MULTILINE)[0]
    found: list[list[bytearray]] = []
    for block in re.findall(r"^```bytes\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            match = re.match(r"(key|value|) +((?:[0-9a-f]{2}(?:  ?|$))+)", line)
            assert match, f"not bytes: {line!r}"
            if match[1] == "key":
                found.append([bytearray(), bytearray()])
            found[-1][match[1] != "key"].extend(bytes.fromhex(match[2]))
    return [(bytes(key), bytes(value)) for key, value in found]


def test_the_page_names_the_format_and_its_fingerprint():
    assert f"**Format {FORMAT}, fingerprint `{fingerprint()}`.**" in TEXT, (
        f"the layout is format {FORMAT} with fingerprint {fingerprint()}, {PAGE.name} speaks of another: "
        "if the layout has changed, raise FORMAT in kgkit/store/layout.py and describe the change there"
    )


def test_the_page_has_a_row_and_a_section_for_every_table_and_for_no_other():
    assert re.findall(r"^### `(\w+)`$", TEXT, re.MULTILINE) == list(TABLES)
    overview = TEXT.split("## Tables")[1].split("### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", overview, re.MULTILINE) == list(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_the_bytes_on_the_page_are_those_on_the_disk(table, stored):
    items = shown(table)
    assert items
    for key, value in items:
        assert stored[table][key].hex(" ") == value.hex(" ")


def test_the_page_gives_the_limits_of_the_layout():
    words = " ".join(TEXT.split())
    assert f"1 to {MAX_KEY} bytes" in words
    assert f"more than {MAX_TOKENS} tokens" in words
    assert f"more than {MAX_CLASS_BITS} |" in words


@pytest.mark.parametrize("struct", [Manifest, SourceInfo, Counts], ids=lambda struct: struct.__name__)
def test_the_page_explains_every_field_of_the_manifest(struct):
    section = TEXT.split("## The manifest")[1].split("\n## ")[0]
    fields = [field.encode_name for field in msgspec.structs.fields(struct)]
    assert [name for name in fields if f"`{name}`" not in section] == []
