"""Spans that frameworks wrote, and the facts that the frameworks and the scripted model report beside them.

``tests/traces/record_frameworks.py`` has recorded them. A fact is a name and a value that can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.traces.turns import AgentRun, TraceStep
from support import ROOT

FRAMEWORKS = ROOT / "tests" / "traces" / "recorded" / "frameworks"
Facts = Mapping[str, Json]


class FrameworkCase(NamedTuple):
    """One recording."""

    framework: str
    case: str

    @property
    def lines(self) -> list[bytes]:
        path = FRAMEWORKS / self.framework / f"{self.case}.jsonl"
        return path.read_bytes().splitlines(keepends=True)

    @property
    def truth(self) -> dict[str, Json]:
        truth: dict[str, Json] = json.loads(
            (FRAMEWORKS / self.framework / f"{self.case}.truth.json").read_text(encoding="utf-8")
        )
        return truth


def framework_cases() -> list[FrameworkCase]:
    """Return all recordings, by name."""
    paths = sorted(FRAMEWORKS.glob("*/*.jsonl"))
    return [FrameworkCase(path.parent.name, path.stem) for path in paths]


@cache
def true_facts(one: FrameworkCase) -> Facts:
    """Return what is to come out of a recording; facts of inner runs start with ``inner ``."""
    truth = one.truth
    outer, *inner = truth["runs"]
    facts: dict[str, Json] = {"runs": len(truth["runs"]), "failed": outer["failed"]}
    if outer["agent"]:
        facts["agent"] = outer["agent"]
    facts |= _true_facts(outer, content=truth["content"])
    if outer["cost_usd"] is not None:
        facts["cost"] = outer["cost_usd"]
    if truth["session"]:
        facts |= {"session": truth["session"], "user": truth["user"]}
    for run in inner:
        within = {"agent": run["agent"]} | _true_facts(run, content=truth["content"])
        facts |= {f"inner {name}": value for name, value in within.items()}
    return facts


def _true_facts(run: Json, *, content: bool) -> dict[str, Json]:
    tools = run["tools"]
    facts: dict[str, Json] = {
        "turns": run["turns"],
        "tokens": run["tokens"] or None,
        "order": run["order"],
        "question": run["question"] if content else "",
        "answer": run["answer"] if content else "",
    }
    if tools:
        facts["tools"] = [tool["name"] for tool in tools]
        facts["arguments"] = [tool["arguments"] if content else "" for tool in tools]
        facts["results"] = [_true_result(tool) if content else "" for tool in tools]
    if any(tool["error"] for tool in tools):
        facts["tool errors"] = [tool["error"] is not None for tool in tools]
    return facts


def found_facts(runs: Sequence[AgentRun], true: Facts) -> Facts:
    """Return what was read for the facts of `true`: the first run is the outer one."""
    if not runs:
        return {"runs": 0}
    outer, *inner = runs
    facts: dict[str, Json] = {"runs": len(runs), "agent": outer.agent.name} | _found_facts(outer, true, "")
    facts |= {"failed": outer.error is not None, "session": outer.session, "user": outer.user}
    facts["cost"] = outer.cost_usd
    for run in inner[:1]:
        within = {"agent": run.agent.name} | _found_facts(run, true, "inner ")
        facts |= {f"inner {name}": value for name, value in within.items()}
    return facts


def _found_facts(run: AgentRun, true: Facts, prefix: str) -> dict[str, Json]:
    tools = [step for step in run.steps if step.kind != "turn"]
    expected = [*true.get(f"{prefix}results", ()), *("" for _ in tools)]
    failed = [*true.get(f"{prefix}tool errors", ()), *(False for _ in tools)]
    return {
        "turns": sum(step.kind == "turn" for step in run.steps),
        "tokens": run.tokens,
        "order": ["turn" if step.kind == "turn" else "tool" for step in run.steps],
        "question": run.prompt,
        "answer": run.reply,
        "tools": [step.name for step in tools],
        "arguments": [_arguments(step.asked) for step in tools],
        "results": [
            _result(step, one, failed=bad) for step, one, bad in zip(tools, expected, failed, strict=False)
        ],
        "tool errors": [step.error is not None for step in tools],
    }


def _arguments(asked: str) -> Json:
    try:
        return json.loads(asked)
    except ValueError:
        return asked


def _true_result(tool: Json) -> Json:
    """Return the result of a tool; of one that failed, its error, or what the model was told instead."""
    told = tool["told"] or ""
    if not tool["error"]:
        return tool["result"]
    return tool["error"] if tool["error"] in told or not told else told


def _result(step: TraceStep, expected: str, *, failed: bool) -> str:
    """Return the result of a step; that of one that failed is as expected where it stands in what is said."""
    said = [step.error or "", step.answered]
    if failed and expected and any(expected in one for one in said):
        return expected
    return step.answered or step.error or ""
