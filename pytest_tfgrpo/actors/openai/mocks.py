"""Mocks of tools: what a scenario has them answer, in place of the tools."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.actors.openai.context import ToolContext
from pytest_tfgrpo.actors.openai.invoke import run_tool
from pytest_tfgrpo.core.errors import ActorError, ProviderError, ToolFailure
from pytest_tfgrpo.core.python.named_callable import plain_callable
from pytest_tfgrpo.core.scenarios import MockCase, ToolMock
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import cut, plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.scoring.checks.json_answer import mismatch
from pytest_tfgrpo.suite.mocks.recorded_calls import by_key, key_of, result_of

if TYPE_CHECKING:
    from pytest_tfgrpo.actors.openai.toolbox import Offer, Tool

SHOWN = 500
OTHERS = "*"
NAMING = {"type", "properties", "required", "title", "description", "$defs"}
"""Keys of a schema whose properties are all its parameters; servers often leave out the key that says so."""
ADD = "add a case, or {real: true} for the tool itself"
UNCOVERED = "mock"
"""Reason code of a rollout with a call that no mock covers: the suite's fault, which scores nothing."""


def require_known(offer: Offer, mocks: Sequence[ToolMock]) -> None:
    """Raise ActorError for a mock of a tool that is not on offer, or of calls that the tool does not take."""
    own = {mock.tool for mock in mocks}
    for mock in mocks:
        if mock.tool != OTHERS and mock.tool not in offer.tools:
            known = ", ".join(offer.tools)
            hint = nearest(mock.tool, offer.tools)
            raise ActorError(f"there is no tool {mock.tool!r} to mock; there are: {known}{hint}")
        tools = [tool for name, tool in offer.tools.items() if (name if name in own else OTHERS) == mock.tool]
        for place, case in enumerate(mock.cases):
            reasons = [_why_never(tool, case.when) for tool in tools if case.when]
            if reasons and all(reasons):
                raise ActorError(f"mocks/{mock.tool}/{place}: no call can fit its `when`: {reasons[0]}")


def _why_never(tool: Tool, when: Mapping[str, Json]) -> str:
    """Return why a tool takes no arguments like these; empty where it may."""
    schema, name = tool.spec.parameters, tool.spec.name
    known = schema.get("properties") or {}
    others = schema.get("additionalProperties") or schema.keys() - {"additionalProperties"} - NAMING
    if known and not others and (unknown := [key for key in when if key not in known]):
        return f"{name} has no parameter {unknown[0]!r}{nearest(unknown[0], known)}"
    plain = {key for key, value in when.items() if not isinstance(value, Mapping | list | tuple)}
    wrong = (one for one in tool.misfits(dict(when)) if len(one.path) == 1 and one.path[0] in plain)
    return next((f"{name} does not take {one.pointer[1:]}: {one.message}" for one in wrong), "")


def mocked(offer: Offer, mocks: Sequence[ToolMock], scenario: str) -> Offer:
    """Return an offer whose tools the mocks answer for, from the start of a rollout of `scenario`."""
    by_name = {mock.tool: mock for mock in mocks}
    plays = {name: Play(by_name.get(name) or by_name.get(OTHERS), scenario) for name in offer.tools}
    tools = {name: _played(tool, plays[name]) for name, tool in offer.tools.items()}
    return replace(offer, tools=tools)


def _played(tool: Tool, play: Play) -> Tool:
    signature = replace(tool.signature, takes_context=True)
    return replace(tool, function=partial(play.answer, tool), signature=signature, is_async=True, server=None)


class Play:
    """The calls of one tool in one rollout."""

    def __init__(self, mock: ToolMock | None, scenario: str) -> None:
        self._mock = mock
        self._scenario = scenario
        self._calls: Counter[int] = Counter()
        """Of each case, by its place."""
        self._recorded: dict[int, dict[bytes, list[Json]]] = {}
        """Of each case the recorded calls, by what equal ones have in common."""
        self._repeats: Counter[bytes] = Counter()
        """Of recorded calls."""

    async def answer(self, tool: Tool, context: ToolContext, /, **arguments: Json) -> Any:
        """Return what stands in for the result; raises ToolFailure, and ProviderError where nothing does."""
        name = tool.spec.name
        if self._mock is None:
            raise self._uncovered(name, arguments, "it has no mock")
        fit = ((n, c) for n, c in enumerate(self._mock.cases) if _fits(c, arguments))
        place, case = next(fit, (0, None))
        if case is None:
            raise self._uncovered(name, arguments, "no `when` of its mocks fits")
        self._calls[place] += 1
        match case.kind:
            case "returns":
                return case.value
            case "raises":
                raise ToolFailure(case.value)
            case "sequence":
                return self._in_turn(name, arguments, case.value, self._calls[place])
            case "recorded":
                return self._again(name, arguments, place, case)
            case "python":
                value = await call_in_daemon(_called, case.value, arguments)
                return await value if inspect.isawaitable(value) else value
            case "real":
                return await run_tool(tool, arguments, context)

    def _in_turn(self, name: str, arguments: Mapping[str, Json], results: Json, number: int) -> Json:
        if number > len(results):
            why = f"its sequence has {plural(len(results), 'result')}"
            raise self._uncovered(name, arguments, why, "add one to it")
        result = results[number - 1]
        if "raises" in result:
            raise ToolFailure(result["raises"])
        return result["returns"]

    def _again(self, name: str, arguments: Mapping[str, Json], place: int, case: MockCase) -> Json:
        if place not in self._recorded:
            self._recorded[place] = by_key(case.value)
        key = key_of(name, arguments)
        same = self._recorded[place].get(key, [])
        self._repeats[key] += 1
        if self._repeats[key] > len(same):
            often = plural(len(same), "time") if same else "never"
            raise self._uncovered(name, arguments, f"{case.file} has it {often}")
        return result_of(same[self._repeats[key] - 1])

    def _uncovered(
        self, name: str, arguments: Mapping[str, Json], why: str, hint: str = ADD
    ) -> ProviderError:
        call = f"{name}({cut(json.dumps(arguments, ensure_ascii=False), SHOWN)})"
        return ProviderError(
            f"no mock of scenario {self._scenario!r} covers the call {call}: {why}; {hint}", UNCOVERED
        )


def _fits(case: MockCase, arguments: Mapping[str, Json]) -> bool:
    return case.when is None or mismatch(case.when, arguments) is None


def _called(target: str, arguments: Mapping[str, Json]) -> Any:
    try:
        return plain_callable(target)(**arguments)
    except (StopIteration, SystemExit) as error:  # which cannot cross a future
        raise ToolFailure(f"{type(error).__name__}: {error}") from error
