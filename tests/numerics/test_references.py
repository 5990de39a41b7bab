"""What TRL, verl, torchrl, rlax and Stable-Baselines3 compute; made by `benchmarks/rl_references.py`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_tfgrpo.numerics.rl import advantages, divergence, losses, normalise, preferences, returns

VECTORS = [
    json.loads(line) for line in Path(__file__).with_name("rl_vectors.jsonl").read_text().splitlines() if line
]
MODULES = (advantages, divergence, losses, normalise, preferences, returns)
WHOLE = {"group_N", "lengths_K", "mask", "mask_BT", "actions", "terminated", "truncated", "episode_starts"}
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


def called(vector: dict[str, Any]) -> Any:
    function = next(
        getattr(module, vector["function"]) for module in MODULES if hasattr(module, vector["function"])
    )
    given = {
        name: np.array(value, dtype=None if name in WHOLE or name == "last_dones" else vector["dtype"])
        if isinstance(value, list)
        else value
        for name, value in vector["arguments"].items()
    }
    return function(**given)


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    found, expected = np.asarray(found), np.asarray(expected, dtype=np.float64)
    if found.ndim:
        assert found.dtype == dtype
    scale = float(np.abs(expected).max(initial=0)) or 1.0
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(
    "vector", VECTORS, ids=[f"{n}-{v['function']}-{v['source'].split(' ')[0]}" for n, v in enumerate(VECTORS)]
)
def test_a_reference_gives_the_same(vector: dict[str, Any]) -> None:
    found, expected, dtype = called(vector), vector["expected"], vector["dtype"]
    if isinstance(expected, dict):
        for name, wanted in expected.items():
            if name == "metrics":
                for metric, value in wanted.items():
                    assert found.metrics[metric] == pytest.approx(value, rel=1e-6)
            else:
                assert_close(getattr(found, name), wanted, dtype)
    elif isinstance(found, tuple):
        for one, wanted in zip(found, expected, strict=False):
            assert_close(one, wanted, dtype)
    else:
        assert_close(found, expected, dtype)


def test_two_libraries_check_each_of_the_basic_functions() -> None:
    libraries = Counter(
        (vector["function"], vector["source"].split(".")[0].split(" ")[0]) for vector in VECTORS
    )
    for function in ("gae", "whiten", "grpo_advantage", "rloo_advantage", "policy_loss", "kl"):
        assert len([library for name, library in libraries if name == function]) >= 2, function
    assert len(VECTORS) >= 300
