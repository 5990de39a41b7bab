"""Records, as a test function of a user meets them."""

from __future__ import annotations

import copy
import pickle

import pytest
from support.builders import make_rollout


@pytest.mark.parametrize(
    ("name", "hint"),
    [("tool_calls", "; did you mean 'frames'?"), ("anwser", "; did you mean 'answer'?"), ("zzz", "")],
)
def test_what_a_rollout_has_not_is_answered_by_the_nearest_name(name: str, hint: str) -> None:
    rollout = make_rollout()
    with pytest.raises(AttributeError) as error:
        getattr(rollout, name)
    assert str(error.value) == f"'Rollout' object has no attribute {name!r}{hint}"
    assert pickle.loads(pickle.dumps(rollout)) == copy.deepcopy(rollout) == rollout
