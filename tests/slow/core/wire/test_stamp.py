"""Stamps: identity is content, whatever order it is written in."""

import subprocess
import sys

from pytest_tfgrpo.core.wire.stamp import seed_of


def test_a_seed_is_the_same_in_another_process_with_another_hash_seed():
    code = "from pytest_tfgrpo.core.wire.stamp import seed_of; print(seed_of(7, 'x', 'sweep', 0))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "99"}
    )
    assert int(run.stdout) == seed_of(7, "x", "sweep", 0)
