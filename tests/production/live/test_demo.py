"""``tfgrpo live demo``: the offline agent serves, the selector learns, the store fails and is killed."""

import re
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from support.campaign import Campaign

from pytest_tfgrpo.cli.demo.demo_library import prepare
from pytest_tfgrpo.cli.demo.demo_service import open_service
from pytest_tfgrpo.cli.live import live_demo

SEEDS = (0, 1, 2, 3, 4)


def last_hundred(prepared: Path, folder: Path, seed: int, *, shuffled: bool = False) -> float:
    """Return the mean score of the selector's last 100 of 600 runs, over that of the best arm."""
    shutil.copytree(prepared, folder)
    config = (folder / "live.toml").read_text()
    (folder / "live.toml").write_text(config.replace('"demo-0"', f'"demo-{seed}"'))
    live, store = live_demo.open_failing(folder)
    with live:
        service = open_service(folder, seed, shuffled=shuffled)
        lines = "\n".join(live_demo.serve(service, live, store, live_demo.TASKS))
    found = re.search(r"^last 100 .* mean score (0\.\d+); best arm (0\.\d+)$", lines, re.MULTILINE)
    assert found is not None
    return float(found[1]) / float(found[2])


@pytest.mark.faults
def test_the_last_runs_are_near_the_best_arm_and_shuffled_rewards_teach_nothing(
    campaign: Campaign, tmp_path: Path
) -> None:
    if not campaign.full:
        pytest.skip("not in the sample")  # which is the demo above
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    prepare(prepared, 0)
    assert fmean(last_hundred(prepared, tmp_path / str(seed), seed) for seed in SEEDS) >= 0.9
    shuffled = [last_hundred(prepared, tmp_path / f"s{seed}", seed, shuffled=True) for seed in SEEDS]
    assert fmean(shuffled) < 0.75
