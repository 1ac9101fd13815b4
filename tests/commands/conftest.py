"""What tests of several commands share."""

import json

import pytest


@pytest.fixture
def put(tmp_path):
    def write(name, *documents):
        """Write records as JSON lines."""
        path = tmp_path / name
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))
        return path

    return write
