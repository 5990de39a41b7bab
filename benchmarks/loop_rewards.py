"""Rewards of the feedback loop in batch against one by one, and redaction against detect-secrets, in one run.

    python benchmarks/loop_rewards.py [--trajectories N]

Rewards: the same evidence, with payloads and history one by one, as columns in batch. Redaction: this
repository's texts, with a key and personal data; detect-secrets, where it is installed, on every tenth file
with its own filters. Processor time of the fastest of three.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.privacy.redact import Redactor, redact
from pytest_tfgrpo.production.rewards.columns import columns, rewards
from pytest_tfgrpo.production.rewards.evidence import RewardClaim, RewardEvidence
from pytest_tfgrpo.production.rewards.history import RewardHistory
from pytest_tfgrpo.production.rewards.rewards import TrajectoryReward, reward

ROOT = Path(__file__).parent.parent


def spent(work: Callable[[], object], times: int = 3) -> float:
    """Return the seconds of processor time of the fastest of some calls."""
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def drawn(count: int) -> list[RewardEvidence]:
    """Return the evidence of so many trajectories of four domains; a tenth lacks any."""
    chance = random.Random(1)

    def claim(name: str, score: float) -> RewardClaim:
        return RewardClaim(component=name, score=score, explicit=False, at="", source="automated")

    found = []
    for n in range(count):
        names = [
            name for name in ("task_completion", "code_quality", "user_feedback") if chance.random() < 0.55
        ]
        found.append(
            RewardEvidence(
                trajectory_id=str(n),
                session_id="s",
                domain=chance.choice(["coding", "research", "data_analysis", "general"]),
                turns=chance.randint(1, 30),
                blocked=chance.random() < 0.02,
                claims={name: claim(name, chance.random()) for name in names},
                marks={},
                problems={},
            )
        )
    return found


def one_by_one(known: list[RewardEvidence]) -> None:
    history = RewardHistory()
    for evidence in known:
        found = reward(evidence, history)
        if isinstance(found, TrajectoryReward):
            history.join(found.payload("2026-01-01T00:00:00Z"))


def show_rewards(count: int) -> None:
    known = drawn(count)
    part = known[: max(1, count // 10)]
    single = spent(lambda: one_by_one(part)) * len(known) / len(part)
    made = spent(lambda: columns(known))
    given = columns(known)
    batch = spent(lambda: rewards(given, RewardHistory()))
    print(
        f"{count:,} rewards: one by one {single:.2f} s, in batch {batch:.3f} s after {made:.3f} s for columns"
    )
    print(
        f"  {single / batch:.0f} times as fast, {single / (batch + made):.0f} times with the columns; bar 20"
    )


def show_redaction() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = []
    for name in names.split():
        try:
            texts.append((ROOT / name).read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
    size = sum(map(len, texts)) / 1e6
    plain = size / spent(lambda: [redact(text) for text in texts])
    keyed = Redactor(b"key")
    rate = size / spent(lambda: [keyed.redacted(text) for text in texts])
    print(f"redaction of {size:.1f} MB: {plain:.1f} MB/s, {rate:.1f} MB/s with a key and personal data")
    try:
        from detect_secrets import SecretsCollection
        from detect_secrets.settings import default_settings
    except ImportError:
        print("  detect-secrets is not installed")
        return
    files = [str(ROOT / name) for name in names.split()[::10]]
    found = SecretsCollection()
    with default_settings():
        other = sum(len(Path(file).read_bytes()) for file in files) / 1e6
        other /= spent(lambda: [found.scan_file(file) for file in files], 1)
    print(f"  detect-secrets {other:.3f} MB/s: {rate / other:.0f} times as fast; bar 10")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=100_000)
    arguments = parser.parse_args()
    show_rewards(arguments.trajectories)
    show_redaction()


if __name__ == "__main__":
    main()
