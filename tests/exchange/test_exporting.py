"""`kgkit.export_kb` and `kgkit.import_kb`: what the commands do, in Python."""

import pytest

import kgkit
from kgkit.errors import NotThere, UsageError


def test_what_cannot_be_written_or_read_is_said_before_the_work(toy, tmp_path):
    with pytest.raises(UsageError, match="does not say its format"):
        kgkit.export_kb(toy, tmp_path / "toy.docx")
    with pytest.raises(NotThere, match="no folder"):
        kgkit.export_kb(toy, tmp_path / "nowhere" / "toy.nt")
    with pytest.raises(NotThere, match="no file"):
        kgkit.import_kb(tmp_path / "nothing.nt", home=tmp_path)
