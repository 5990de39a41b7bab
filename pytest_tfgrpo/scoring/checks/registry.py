"""The table of check kinds, and the results of a scenario's checks on one attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.core.conversations import turns_of
from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.answer import CONTAINS, EXACT, NUMBER_KIND
from pytest_tfgrpo.scoring.checks.calls import TOOL_CALLS
from pytest_tfgrpo.scoring.checks.command import COMMAND
from pytest_tfgrpo.scoring.checks.files import FILE
from pytest_tfgrpo.scoring.checks.hidden.hidden_archives import remembered
from pytest_tfgrpo.scoring.checks.json_answer import JSON, JSON_SCHEMA
from pytest_tfgrpo.scoring.checks.limits import LIMITS
from pytest_tfgrpo.scoring.checks.math import MATH
from pytest_tfgrpo.scoring.checks.patterns import REGEX
from pytest_tfgrpo.scoring.checks.protocol import (
    CheckContext,
    CheckKind,
    TooSlow,
    Undecided,
    builtin_params,
    failed,
)
from pytest_tfgrpo.scoring.checks.python import PYTHON
from pytest_tfgrpo.scoring.checks.signs import CSI, ESC, without_colours
from pytest_tfgrpo.scoring.checks.similar import SIMILAR


def _prepare_tests(params: Mapping[str, Json], folder: Path) -> Mapping[str, Json]:
    from pytest_tfgrpo.scoring.checks.hidden.tests_kind import prepare

    return prepare(params, folder)


def _run_tests(check: Check, context: CheckContext) -> CheckResult:
    from pytest_tfgrpo.scoring.checks.hidden.hidden_tests import run_hidden

    return run_hidden(check, context)


def _answers_of_tests(check: Check) -> tuple[str, ...]:
    hidden = remembered(check.params.get("hidden_sha256", ""))
    if hidden is None:
        return ()
    from pytest_tfgrpo.scoring.checks.hidden.hidden_tests import fix_lines

    return fix_lines(hidden)


TESTS = CheckKind(
    name="tests",
    params=builtin_params("tests"),
    evaluate=_run_tests,
    answers=_answers_of_tests,
    prepare=_prepare_tests,
    after_turn=False,
    negatable=False,  # a run that ends early, or that the agent's files broke, shows nothing
)
"""Few suites have hidden tests, whose runners are loaded with the first."""
KINDS: dict[str, CheckKind] = {
    kind.name: kind for kind in (
        EXACT, CONTAINS, REGEX, SIMILAR, NUMBER_KIND, MATH, JSON, JSON_SCHEMA, TOOL_CALLS, LIMITS, FILE,
        COMMAND, TESTS, PYTHON,
    )
}  # fmt: skip
"""The built-in kinds by name; more come from the hook ``pytest_tfgrpo_checks``."""
TEXTS = frozenset({"exact", "contains", "regex", "similar", "number", "math", "json", "json_schema"})
"""Kinds that read the answer as a text, in which the colours of a terminal say nothing."""
_NO_FILES = TEXTS | {"tool_calls", "limits"}
"""Built-in kinds that read the answer and the steps alone, never the workspace."""

Evaluate: TypeAlias = Callable[[Check, CheckContext], CheckResult]


def evaluate(
    checks: Iterable[Check], context: CheckContext, kinds: Mapping[str, CheckKind], *, at_once: bool = False
) -> tuple[CheckResult, ...]:
    """Return what each check found, in order; raises CheckError when one itself breaks.

    With `at_once` it ends within milliseconds, or raises TooSlow.
    """
    turns: Mapping[int, CheckContext] | None = None
    planned = [(check, _function_of(kinds[check.kind], at_once=at_once)) for check in checks]
    found = []
    for check, function in planned:
        if check.turn is None:
            found.append(_evaluate(check, context, function))
            continue
        turns = _after_turns(context) if turns is None else turns
        found.append(_after_turn(check, turns.get(check.turn), function))
    return tuple(found)


def _function_of(kind: CheckKind, *, at_once: bool) -> Evaluate:
    if not at_once or not kind.blocking:
        return kind.evaluate
    if kind.at_once is None:
        raise TooSlow
    return kind.at_once


def _after_turns(context: CheckContext) -> dict[int, CheckContext]:
    """Return what a check sees after each turn of a conversation: its answer and its own steps."""
    return {
        turn.number: replace(
            context,
            answer=turn.answer,
            frames=turn.frames,
            latency_ms=sum(frame.latency_ms for frame in turn.frames),
        )
        for turn in turns_of(context.frames, context.answer)
    }


def _after_turn(check: Check, context: CheckContext | None, function: Evaluate) -> CheckResult:
    if context is None:
        return failed(check, f"turn {check.turn} was not reached")
    result = _evaluate(check, context, function)
    return replace(result, reason=f"turn {check.turn}: {result.reason}") if result.reason else result


def _evaluate(check: Check, context: CheckContext, function: Evaluate) -> CheckResult:
    answer = context.answer
    if (ESC in answer or CSI in answer) and check.kind in TEXTS:
        context = context if _names_colours(check) else replace(context, answer=without_colours(answer))
    try:
        result = function(check, context)
    except (CheckError, TooSlow):
        raise
    except Undecided as why:
        return failed(check, str(why))
    except BaseException as error:  # on the engine's thread no interrupt is a person's
        raise CheckError(f"check {check.kind!r} raised {error!r}") from error
    if not isinstance(result, CheckResult) or not 0 <= result.credit <= 1:
        raise CheckError(
            f"check {check.kind!r} must return a CheckResult with credit in [0, 1], not {result!r}"
        )
    return _opposite(check, result) if check.negated else result


def _names_colours(check: Check) -> bool:
    """Return whether a check is itself about escape sequences."""
    told = repr(dict(check.params))
    return any(spelling in told for spelling in ("\\x1b", "\\x9b", "\\\\033", "\\\\e", "\\\\u001b"))


def _opposite(check: Check, result: CheckResult) -> CheckResult:
    """Return what a check that says ``not`` makes of the result of its kind."""
    credit = 1.0 - result.credit
    wanted = f"expected not {check.kind} {short(dict(check.params))}"
    reason = "" if credit >= 1 else f"{wanted}: {result.reason}" if result.reason else wanted
    return replace(result, kind=check.title, credit=credit, reason=reason)


def may_look(checks: Iterable[Check], kinds: Mapping[str, CheckKind]) -> bool:
    """Return whether one of `checks` may look at the workspace: kinds of plugins may, too."""
    return any(check.kind not in _NO_FILES or kinds[check.kind] is not KINDS[check.kind] for check in checks)


def is_blocking(checks: Iterable[Check], kinds: Mapping[str, CheckKind]) -> bool:
    """Return whether one of `checks` must be evaluated on a thread."""
    return any(kinds[check.kind].blocking for check in checks)
