"""Messages of rollouts without an answer, and what was found out about endpoints, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_group, make_rollout
from support.sweeps import make_run

from pytest_tfgrpo.core.records import Failure, Group, Run
from pytest_tfgrpo.report.blocks.endpoints import endpoint_lines, endpoint_texts
from pytest_tfgrpo.report.blocks.fault_messages import SHORT, fault_lines, fault_rows


def failed(run: Run, *failures: tuple[str, str, str]) -> Run:
    """Return the run with a group of rollouts that failed so: status, code, message."""
    rollouts = tuple(
        replace(make_rollout(n, None), status=status, failure=Failure(code=code, message=message))
        for n, (status, code, message) in enumerate(failures)
    )
    group: Group = make_group([None] * len(failures), rollouts=rollouts)
    (phase,) = run.phases
    return replace(run, phases=(replace(phase, groups=(group,)),))


def test_messages_that_differ_in_numbers_alone_are_one_and_the_most_frequent_is_first() -> None:
    run = failed(
        make_run(final={"a": [1]}),
        ("error", "timeout", "port 7"),
        ("error", "connection", "refused at 0xab after 1.5 s"),
        ("error", "connection", "refused at 0xcd after 20 s"),
        ("failed", "connection", "refused at 0xcd after 20 s"),
    )
    rows = fault_rows(run)
    assert [(row["kind"], row["code"], row["n"]) for row in rows] == [
        ("errors", "connection", 2),
        ("errors", "timeout", 1),
        ("failed", "connection", 1),
    ]
    first = rows[0]
    assert first["text"] == "refused at 0xab after 1.5 s"
    assert (first["example"], list(first["sweeps"].values())) == (make_rollout(1).rollout_id, [2])
    label = next(iter(first["sweeps"]))
    shown = list(fault_lines(rows, 80, every=True, kept=True))
    assert shown[:2] == [
        f"  2 x connection: refused at 0xab after 1.5 s ({label} 2)",
        f"    tfgrpo show {make_rollout(1).rollout_id}",
    ]
    assert len(shown) == 6
    assert list(fault_lines(rows, 80, every=True, kept=False)) == shown[::2]


def test_those_of_the_dev_split_are_counted_apart() -> None:
    run = failed(make_run(final={"a": [1]}), ("error", "timeout", "port 7"))
    (phase,) = run.phases
    (group,) = phase.groups
    dev = replace(group, mode="dev", rollouts=tuple(replace(r, mode="dev") for r in group.rollouts))
    (found,) = fault_rows(replace(run, phases=(replace(phase, dev=(dev, dev)),)))
    assert found["sweeps"] == {phase.phase.label: 1, f"{phase.phase.label} dev": 2}


def row(n: int, code: str = "crash") -> Any:
    known = {
        "kind": "failed",
        "text": f"text {n}",
        "n": n,
        "sweeps": {"final": n},
        "example": f"run1.e2.s.r{n}",
    }
    return known | {"code": code}


def test_few_messages_are_shown_and_none_that_was_told_before() -> None:
    rows = [row(n) for n in range(SHORT + 3)]
    shown = list(fault_lines(rows, 80, every=False, kept=False))
    assert len(shown) == SHORT + 1
    assert shown[-1] == "  ... 3 more messages; -v shows all"
    assert len(list(fault_lines(rows, 80, every=True, kept=False))) == SHORT + 3
    clusters = [{"label": "timeout: none"}] + [{"label": "other"}] * (SHORT - 1) + [{"label": "late: x"}]
    told: Any = {"sweep": "final", "views": {"reason": {"clusters": clusters}}}
    some = [row(2, "timeout"), row(1, "late"), row(7)]
    found = list(fault_lines(some, 60, every=False, kept=True, told=told))
    assert len(found) == 2
    assert found[0].startswith("  1 x late: text 1 ")
    assert found[0].endswith("  e2.s.r1")
    assert len(found[0]) <= 60
    assert found[1].startswith("  7 x crash: text 7 ")
    elsewhere: Any = told | {"sweep": "baseline"}
    assert len(list(fault_lines(some, 60, every=False, kept=False, told=elsewhere))) == 3
    assert len(list(fault_lines(some, 60, every=True, kept=False, told=told))) == 3


ENDPOINT = {"endpoint": "http://a", "found": True, "lowest": 3, "highest": 8}
ENDPOINT |= {"concurrency": 5, "calls": 40, "refused": 0}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "http://a: settled at 5 calls at once (3 to 8); none refused as too many"),
        (
            {"lowest": 8, "refused": 2},
            "http://a: settled at 5 calls at once; 2 of 40 calls refused as too many",
        ),
        (
            {"found": False, "concurrency": 1},
            "http://a: no limit found up to 1 call at once; none refused as too many",
        ),
    ],
)
def test_an_endpoint_says_where_it_settled_and_what_was_refused(changes: dict[str, Any], text: str) -> None:
    report: Any = {"endpoints": [ENDPOINT | changes]}
    assert endpoint_texts(report) == [text]
    assert " ".join(part.strip() for part in endpoint_lines(report, 40)) == f"endpoint  {text}"
    empty: Any = {}
    assert endpoint_lines(empty, 40) == []
