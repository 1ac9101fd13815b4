"""The learning curve of K-BERT: points, table and picture, of counts that are made up."""

import numpy as np
import pytest

from benchmarks.learning_curve import CurvePoint, curve_table, draw_curve

CONTROL = np.array([[[1, 2, 2], [0, 1, 2]], [[2, 2, 2], [0, 1, 2]]])  # F1 2/7 and 4/7 of two seeds
INJECTED = np.array([[[2, 2, 2], [1, 1, 2]], [[2, 2, 2], [1, 1, 2]]])  # 6/7 of both
MEASURED = {
    CurvePoint(100, 5): {"control": CONTROL, "hownet": INJECTED},
    CurvePoint(None, 1): {"control": INJECTED, "hownet": INJECTED},
}


def test_a_point_is_texts_and_epochs():
    assert CurvePoint.parse("5000:5") == (5000, 5, ())
    assert CurvePoint.parse("all:1:0,2") == (None, 1, (0, 2))
    with pytest.raises(ValueError):
        CurvePoint.parse("5000")


def test_each_point_has_both_scores_and_their_difference():
    first, second = curve_table(MEASURED, "hownet").rows
    assert first[:4] == ["100", "5", "42.86 ± 20.20", "28.57, 57.14"]
    assert first[4:7] == ["85.71 ± 0.00", "85.71, 85.71", "+42.86"]
    assert (second[0], second[6], second[7]) == ("all", "+0.00", "1.0000")


def test_the_picture_has_a_line_for_each_variant(tmp_path):
    pytest.importorskip("matplotlib")
    draw_curve(MEASURED, "hownet", 400, tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()
