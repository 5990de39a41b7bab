"""The block `evaluations`: how many variants the eval split has seen."""

from __future__ import annotations

from pytest_tfgrpo.metrics.looks import Evaluations, evaluations
from pytest_tfgrpo.report.blocks.block import ReportBlock


def _text(found: Evaluations) -> str:
    looks = found.get("looks", found["earlier"] + 1)
    if looks < 2:
        return ""
    best = "the better" if looks == 2 else "the best"
    return (
        f"{looks} variants, this one included, were evaluated on this eval split; "
        f"picking {best} of them overstates its score"
    )


REUSED = ReportBlock(
    "evaluations",
    lambda at: evaluations(at.run, at.sweeps),
    _text,
    name="reused",
    always=lambda *_: True,
    null=True,
)
