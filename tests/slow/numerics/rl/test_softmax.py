import pytest
from support.tool_choice import learned


@pytest.mark.parametrize("seed", range(1, 10))
@pytest.mark.parametrize("how", ["ppo", "grpo", "rloo"])
def test_a_policy_learns_which_tool_each_step_needs(how: str, seed: int) -> None:
    assert learned(how, seed) >= 0.9  # type: ignore[arg-type]
