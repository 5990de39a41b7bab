"""What a group at a proven job came to: its rollouts ranked, and a fix that is better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders import make_group

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.records import FileChange, Run
from pytest_tfgrpo.patterns.optimise.fix_size import ProvenFix
from pytest_tfgrpo.patterns.optimise.rollouts import (
    FixRollouts,
    TriedFix,
    ranked,
    read_rollouts,
    write_rollouts,
)

FIX = ProvenFix(base={"a.py": b""}, fixed={"a.py": b"1\n2\n3\n"}, protected=frozenset(), globs=())
DECOY: Any = "a decoy"


def run_of(*rollouts: tuple[float, float | None, dict[str, Any]]) -> Run:
    """Return a run whose rollouts have a score, a rank and other values."""
    group = make_group([score for score, _, _ in rollouts])
    group = replace(
        group,
        rollouts=tuple(
            replace(one, **more) for one, (_, _, more) in zip(group.rollouts, rollouts, strict=True)
        ),
        scores=tuple(
            replace(one, gt_score=score, relative_rank=rank)
            for one, (score, rank, _) in zip(group.scores, rollouts, strict=True)
        ),
    )
    return cast("Run", SimpleNamespace(phases=[SimpleNamespace(groups=[group])]))


def wrote(lines: int, **more: Any) -> dict[str, Any]:
    text = "".join(f"{n}\n" for n in range(1, lines + 1))
    files = (FileChange(name="a.py", text=text), FileChange(name="tests/test_a.py", text="x"))
    return {"files": files, **more}


def test_the_best_rank_comes_first_then_the_smaller_fix_then_the_earlier() -> None:
    run = run_of(
        (1.0, 0.5, wrote(3)), (0.5, 0.5, wrote(1)), (1.0, 0.5, wrote(2)), (1.0, None, wrote(1)),
        (1.0, 1.0, wrote(2)), (1.0, 1.0, wrote(2)),
    )  # fmt: skip
    tried, better = ranked(run, FIX)
    assert [(one.index, one.lines) for one in tried] == [(4, 2), (5, 2), (2, 2), (0, 3), (1, None), (3, 1)]
    assert better == (FileChange(name="a.py", text="1\n2\n"),)


@pytest.mark.parametrize(
    ("score", "more", "lines"),
    [
        (0.999, wrote(1), None),
        (1.0, wrote(3), 3),
        (1.0, wrote(4), 4),
        (1.0, wrote(1, status="error"), None),
        (1.0, wrote(1, decoy=DECOY), None),
        (1.0, {"files": None}, None),
    ],
    ids=["not all tests", "as large", "larger", "error", "decoy", "not kept"],
)
def test_what_is_no_smaller_fix_that_passes_every_test_is_no_better(
    score: float, more: Any, lines: int | None
) -> None:
    ((tried,), better) = ranked(run_of((score, 1.0, more)), FIX)
    assert (tried.lines, better) == (lines, None)


def test_a_run_without_rollouts_has_no_better_fix() -> None:
    assert ranked(cast("Run", SimpleNamespace(phases=[])), FIX) == ([], None)


def test_the_file_of_a_group_reads_back_and_what_is_damaged_is_named(tmp_path: Path) -> None:
    assert read_rollouts(tmp_path) is None
    found = FixRollouts(
        agent="bot", run_id="RUN-1", status="complete", approved_lines=3, job="x",
        rollouts=(TriedFix(index=1, status="ok", gt_score=1.0, relative_rank=0.5, lines=2),),
    )  # fmt: skip
    (tmp_path / "optimise").mkdir()
    write_rollouts(tmp_path, found)
    assert read_rollouts(tmp_path) == found
    (tmp_path / "optimise" / "rollouts.json").write_text("{")
    with pytest.raises(StoreError, match=r"rollouts\.json: .*; move it away, nothing rests on it"):
        read_rollouts(tmp_path)
