"""The bench of dropout of attention on small models."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import attention_dropout


@pytest.mark.slow
def test_both_models_are_timed_in_turn_and_the_first_round_does_not_count(monkeypatch):
    calls = []

    def clock(_):
        def timed(step):
            calls.append(step.func.__self__.model.config.attention_probs_dropout_prob)
            step()
            return 100.0 if len(calls) < 3 else (1.0, 3.0)[len(calls) % 2]  # with dropout 3 s, without 1 s

        return timed

    monkeypatch.setattr(attention_dropout, "timed", clock)
    table = attention_dropout.measure(32, [8, 16], 1)
    assert calls == [0.1, 0.0] * 4
    assert [row[0] for row in table.rows] == ["4 × 8", "2 × 16"]
    assert table.rows[1][1:] == ["3.00", "1.00", "3.00"]


@pytest.mark.slow
def test_a_text_longer_than_the_pieces_is_read_alone():
    table = attention_dropout.measure(4, [8], 1)
    assert table.rows[0][0] == "1 × 8"
