"""WordNet files that are not as they should be: one `SourceError` that names the file and the line."""

import re
from pathlib import Path

import pytest

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit.errors import NotThere, SourceError
from tests.mini_wordnet import mini_wordnet


@pytest.fixture
def source(tmp_path) -> Path:
    return mini_wordnet(tmp_path / "wordnet")


def replace(file: Path, pattern: str, new: str) -> int:
    """Write *new* for the first match of *pattern*, and return the number of its line."""
    text = file.read_text(encoding="utf-8")
    found = re.search(pattern, text)
    assert found is not None
    file.write_text(text[: found.start()] + new + text[found.end() :], encoding="utf-8")
    return text.count("\n", 0, found.start()) + 1


def cut(file: Path, beginning: str) -> int:
    """Keep of the first line that has *beginning* no more than that, and return its number."""
    found = re.search(beginning, file.read_text(encoding="utf-8"))
    assert found is not None
    return replace(file, re.escape(found[0]) + ".*", found[0])


def complaint(source: Path, home: Path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        kgkit.build_kb(WordNetBuilder(), source, home=home)
    with pytest.raises(NotThere):
        kgkit.open_kb("wordnet", home=home)
    return caught.value


@pytest.mark.parametrize(
    ("file", "beginning"),
    [
        ("data.noun", r"\d+ 05 n 03 dog 0 domestic_dog"),  # in the words
        ("data.noun", r"\d+ 05 n 03 dog 0 .* 0 005 @ \d+"),  # in the pointers
        ("data.noun", r"\d+ 05 n 03 dog 0 .* 0 005 @ \d+ n 0000"),  # between two pointers
        ("data.noun", r"\d+ 05 n 03 dog 0 .* 0 005( \S+ \d+ n 0000){5}"),  # before the gloss
        ("data.noun", r"\d{8}"),
        ("data.verb", r"\d+ 38 v 03 chase .* 03 \+ 08 00 \+ 09"),  # in the frames
        ("data.verb", r"\d+ 38 v 03 chase .* 03 \+ 08 00"),
        ("data.adj", r"\d+ 00 s 02 beneficial 0 good 1 001 &"),
        ("index.noun", r"dog n 3 5 # ;"),
        ("index.noun", r"dog n 3 5 .* 3 0 \d+"),  # one sense of three
        ("index.noun", r"dog n 3"),
        ("noun.exc", r"mice"),
        ("cntlist.rev", r"dog%1:05:00:: 1"),
    ],
)
def test_a_truncated_line_is_named(source, tmp_path, file, beginning):
    line = cut(source / file, rf"(?m:^{beginning})(?= )")
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / file, line)
    found = (source / file).read_text(encoding="utf-8").split("\n")[line - 1]
    assert found.startswith(str(error.text).removesuffix("..."))
    assert str(error).startswith(f"{source / file}:{line}: ")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("data.noun", r" n 03 dog 0", " n xx dog 0"),  # how many words
        ("data.noun", r" n 03 dog 0", " n 03 dog ?"),  # a lex id
        ("data.noun", r"Canis_familiaris 0 005", "Canis_familiaris 0 5.0"),  # how many pointers
        ("data.noun", r" n 0000", " n 00zz"),  # which words of a pointer
        ("data.noun", r" 05 n 03 dog", " 99 n 03 dog"),  # a lexicographer file
        ("data.noun", r" 05 n 03 dog", " 05 x 03 dog"),  # a type of synset
        ("data.noun", r"#m ", "#x "),  # a relation
        ("data.adj", r" a 0101", " a 0109"),  # the ninth word of a synset that has not so many
        ("data.verb", r"\+ 08 00", "+ eight 00"),  # a frame
        ("index.noun", r"dog n 3", "dog n three"),
        ("cntlist.rev", r"dog%1:05:00:: 1 42", "dog%1:05:00:: 1 forty-two"),
    ],
)
def test_what_is_no_number_and_no_symbol_is_named(source, tmp_path, file, old, new):
    line = replace(source / file, old, new)
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / file, line)


@pytest.mark.parametrize("file", ["data.noun", "index.verb", "adj.exc", "cntlist.rev"])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line(source, tmp_path, file):
    content = (source / file).read_bytes().splitlines(keepends=True)
    content[-1] = b"caf\xe9 " + content[-1]
    (source / file).write_bytes(b"".join(content))
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / file, len(content))
    assert "not UTF-8" in str(error)


def test_a_pointer_to_no_synset_is_named(source, tmp_path):
    line = replace(source / "data.noun", r"#m \d+", "#m 00000001")
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / "data.noun", line)
    assert "nothing is known of '00000001'" in str(error)


def test_a_satellite_without_a_head_is_named(source, tmp_path):
    line = replace(source / "data.adj", r"& (?=\d+ a 0000 \| promoting)", "^ ")
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / "data.adj", line)


def test_an_index_without_a_synsets_lemma_is_told_of_the_synset(source, tmp_path):
    replace(source / "index.noun", r"(?m:^dog .*\n)", "")
    line = replace(source / "data.noun", r" 05 n 03 dog 0", " 05 n 03 dog 0")
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / "data.noun", line)
    assert "index.noun does not list it under 'dog'" in str(error)


def test_an_index_of_another_release_is_told_of_the_synset(source, tmp_path):
    replace(source / "index.noun", r"(?m:(?<=^mouse n 1 1 @ 1 0 )\d+)", "00000001")
    line = replace(source / "data.noun", r" mouse 0", " mouse 0")
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source / "data.noun", line)
    assert "'mouse'" in str(error)


@pytest.mark.parametrize("file", ["data.adv", "index.adj", "verb.exc", "cntlist.rev"])
def test_a_missing_file_is_named(source, tmp_path, file):
    (source / file).unlink()
    with pytest.raises(NotThere, match=file):
        kgkit.build_kb(WordNetBuilder(), source, home=tmp_path / "home")


def test_a_folder_without_wordnet_is_no_source(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "none-at-all"):
        with pytest.raises(NotThere, match=r"data\.noun"):
            kgkit.build_kb(WordNetBuilder(), tmp_path / folder, home=tmp_path / "home")


def test_empty_files_make_no_kb(source, tmp_path):
    for file in source.iterdir():
        file.write_bytes(b"")
    error = complaint(source, tmp_path / "home")
    assert "no entity" in str(error)
