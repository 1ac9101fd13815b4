"""Parts of the Chinese tasks, for learning curves."""

from benchmarks.chinese import first_texts
from kgkit.files import written


def test_the_first_texts_of_a_part_have_its_header(tmp_path):
    source = tmp_path / "names" / "train.tsv.xz"
    source.parent.mkdir()
    with written(source) as file:
        file.write("text_a\tlabel\n东 京\tB I\n上 海\tB I\n北 京\tB I\n".encode())
    first = first_texts(source, 2, tmp_path)
    assert first.name == "names-train-first-2.tsv"
    assert first.read_text(encoding="utf-8") == "text_a\tlabel\n东 京\tB I\n上 海\tB I\n"
    first.write_text("kept", encoding="utf-8")
    assert first_texts(source, 2, tmp_path).read_text() == "kept"  # a training that goes on has its own file
