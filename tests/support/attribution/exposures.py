"""What the tests of learning/attribution/test_exposures.py share with the slow ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_tfgrpo.core.lessons import Experience, Exposure
from pytest_tfgrpo.learning.attribution import pooling
from pytest_tfgrpo.learning.attribution.exposures import (
    RunExposures,
    content_key,
    write,
)
from pytest_tfgrpo.learning.library.library import of
from support.builders import make_experience


def written(out: Path, run_id: str, rows: list[Exposure], measure: str = "ours") -> Path:
    """Write the exposures of a run whose journal tells nothing."""
    folder = out / "demo" / "runs" / run_id
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("{}\n")
    own = tuple(replace(row, run_id=run_id) for row in rows)
    write(folder, RunExposures(run_id=run_id, measure=measure, actor="a", epochs=(1,), rows=own))
    return folder


def earlier(out: Path, lessons: list[Experience]) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "measure_of", lambda *_: "ours")
        return pooling.earlier_exposures(
            out, "demo", of(lessons), stamps={}, identities={}, settings=cast(Any, {"lesson_dropout": 0.2})
        )


LESSONS = [make_experience(n, summary32=f"Lesson {'abc'[n]}.") for n in range(3)]
KEYS = [*map(content_key, LESSONS), "f" * 16]
