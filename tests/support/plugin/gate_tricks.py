"""What the tests of plugin/test_gate_tricks.py share with the slow ones."""

from __future__ import annotations

CHECKER = """
@pytest.mark.tfgrpo(split="eval", **MARK)
@pytest.mark.parametrize("n", range(20))
def test_agent(rollout, n):
    if n > 13 and BAD:
        {instead}
    assert rollout.answer == "3"
"""
