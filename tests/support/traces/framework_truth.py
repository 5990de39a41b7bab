"""Spans that frameworks wrote, and the facts that the frameworks and the scripted model report beside them.

``.../record_frameworks.py`` has recorded them. A fact is a name and a value that can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, TraceStep
from support import ROOT

FRAMEWORKS = ROOT / "tests" / "telemetry" / "traces" / "recorded" / "frameworks"
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
        facts["cost"] = round(outer["cost_usd"], 9)
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


def found_facts(runs: Sequence[AgentRun], one: FrameworkCase) -> Facts:
    """Return what was read for the facts of a recording: the first run is the outer one."""
    if not runs:
        return {"runs": 0}
    true, *true_inner = one.truth["runs"]
    outer, *inner = runs
    facts: dict[str, Json] = {"runs": len(runs), "agent": outer.agent.name} | _found_facts(outer, true)
    facts |= {"failed": outer.error is not None, "session": outer.session, "user": outer.user}
    facts["cost"] = outer.cost_usd and round(outer.cost_usd, 9)
    for run, true in zip(inner, true_inner, strict=False):
        within = {"agent": run.agent.name} | _found_facts(run, true)
        facts |= {f"inner {name}": value for name, value in within.items()}
    return facts


def _found_facts(run: AgentRun, true: Json) -> dict[str, Json]:
    tools = [step for step in run.steps if step.kind != "turn"]
    return {
        "turns": sum(step.kind == "turn" for step in run.steps),
        "tokens": run.tokens,
        "order": ["turn" if step.kind == "turn" else "tool" for step in run.steps],
        "question": run.prompt,
        "answer": run.reply,
        "tools": [step.name for step in tools],
        "arguments": [_arguments(step.asked) for step in tools],
        "results": [_result(*pair) for pair in zip_longest(tools, true["tools"])],
        "tool errors": [step.error is not None for step in tools],
    }


def _arguments(asked: str) -> Json:
    try:
        return json.loads(asked)
    except ValueError:
        return asked


def _plain(result: Json) -> Json:
    """Return the text that is a function's whole result, as one framework wraps it."""
    found = _arguments(result) if isinstance(result, str) else None
    return found["result"] if isinstance(found, dict) and found.keys() == {"result"} else result


def _true_result(tool: Json) -> Json:
    """Return the result of a tool; of one that failed, its error, or what the model was told instead."""
    told = tool["told"] or ""
    if not tool["error"]:
        return _plain(tool["result"])
    return tool["error"] if tool["error"] in told or not told else told


def _result(step: TraceStep | None, tool: Json) -> str | None:
    """Return the result of a step; the true one where the step says what the model was told, or in which the
    error of a tool that failed stands; None where nobody knows it."""
    if step is None or (tool and tool["result"] is None and not tool["error"]):
        return None
    said = [step.error or "", step.answered]
    expected = tool and _true_result(tool)
    if expected and tool["error"] and any(expected in one for one in said):
        return str(expected)
    if expected and tool["told"] and _arguments(step.answered) == _arguments(tool["told"]):
        return str(expected)
    return step.answered or step.error or ""
