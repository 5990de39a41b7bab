"""Many random states of a working tree, each compared with plain git."""

from pathlib import Path
from random import Random

import pytest
from support.captures import captured, kept, staged_tree
from support.random_states import random_state
from support.repositories import git


@pytest.mark.parametrize("block", range(16))
def test_random_states_give_what_git_would_stage(tmp_path: Path, block: int) -> None:
    for seed in range(100 * block + 100, 100 * block + 112):
        folder = tmp_path / f"place-{seed}" / "shop"
        folder.parent.mkdir()
        random_state(folder, Random(seed))
        wanted, before = staged_tree(folder, tmp_path / f"copy-{seed}"), kept(folder)
        job = captured(folder)
        found = git(folder, "rev-parse", "HEAD^{tree}") if job is None else job.snapshot and job.snapshot.tree
        assert found == wanted, seed
        assert kept(folder) == before, seed
