"""CoNLL-2000 cut into documents, as a tagger is trained on them."""

import sys
import zipfile

from benchmarks import chunks
from kgkit.evaluation.ner import read_names

SENTENCES = "".join(f"The DT B-NP\ndog{number} NN I-NP\neats VBZ B-VP\n\n" for number in range(5))


def test_every_so_many_sentences_are_a_document_of_chunks(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "conll2000.zip", "w") as archive:
        for part in chunks.PARTS:
            archive.writestr(f"conll2000/{part}.txt", SENTENCES)
    words = ["chunks", "--out", tmp_path / "new", "--sentences", 2, "--source", tmp_path / "conll2000.zip"]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    chunks.main()
    documents = [*read_names(tmp_path / "new" / "train.txt")]
    assert [len(named.document.sentences) for named in documents] == [2, 2, 1]
    assert [name.type for name in documents[0].names] == ["NP", "VP"] * 2
    first = documents[2].names[0]
    assert documents[2].document.text[first.start : first.end] == "The dog4"
    assert (tmp_path / "new" / "test.txt").read_text() == (tmp_path / "new" / "train.txt").read_text()
