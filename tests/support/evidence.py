"""Evidence files for tests."""

from collections.abc import Iterable
from pathlib import Path

from pytest_tfgrpo.core.evidence import (
    EvidenceAttempt,
    EvidenceGroup,
    EvidenceHeader,
    EvidenceStep,
    evidence_lines,
)

CALC = EvidenceStep(kind="tool", name="calc", input={"a": 1}, output="2", latency_ms=5.0)


def group(n: int, *rewards: float, domain: str = "general", **fields: object) -> EvidenceGroup:
    """Return a group of attempts, of which those that earned more than half used a tool."""
    attempts = tuple(
        EvidenceAttempt(
            total_reward=reward,
            answer=f"answer {n}-{at}",
            trajectory_id=f"t{n}-{at}",
            steps=(CALC,) if reward > 0.5 else (),
        )
        for at, reward in enumerate(rewards or (0.9, 0.1))
    )
    made = {"id": f"g{n}", "domain": domain, "prompt": f"Task {n}: what is the sum of {n} and {n}?"} | fields
    return EvidenceGroup(attempts=attempts, **made)  # type: ignore[arg-type]


GROUPS = [group(n, 0.9, 0.1, *[0.2] * (n % 3)) for n in range(1, 9)]


def write(path: Path, groups: Iterable[EvidenceGroup] = GROUPS) -> Path:
    """Write an evidence file and return its path."""
    path.write_text("".join(evidence_lines(EvidenceHeader(), groups)))
    return path
