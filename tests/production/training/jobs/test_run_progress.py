"""What a status says of a run that is not over."""

from pathlib import Path

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.production.training.jobs.run_progress import RunProgress
from pytest_tfgrpo.runs.journal.journal import encode


def test_of_epochs_that_trained_equally_well_the_first_is_the_best(tmp_path: Path) -> None:
    groups = [(1, [0.25, 0.25]), (2, [0.0, 1.0]), (3, [0.5]), (4, [0.25])]
    lines = [
        encode(
            n,
            "group",
            {
                "group_id": f"g{epoch}",
                "epoch": epoch,
                "mode": "train",
                "scores": [{"reward": reward} for reward in rewards],
            },
        )
        for n, (epoch, rewards) in enumerate(groups, 1)
    ]
    (tmp_path / JOURNAL).write_bytes(b"".join(lines))
    progress = RunProgress(tmp_path)
    progress.look()
    found = progress.metrics()
    assert found["best"] == {"epoch": 2, "reward_mean": 0.5}
    assert found["current"] == {"reward_mean": 0.25, "reward_std": 0.0}
