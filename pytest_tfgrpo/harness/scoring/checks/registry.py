"""The table of check kinds, and the results of a scenario's checks on one attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.harness.scoring.checks.answer import CONTAINS, EXACT, NUMBER_KIND
from pytest_tfgrpo.harness.scoring.checks.calls import TOOL_CALLS
from pytest_tfgrpo.harness.scoring.checks.command import COMMAND
from pytest_tfgrpo.harness.scoring.checks.files import FILE
from pytest_tfgrpo.harness.scoring.checks.math import MATH
from pytest_tfgrpo.harness.scoring.checks.patterns import REGEX
from pytest_tfgrpo.harness.scoring.checks.protocol import CheckContext, CheckKind
from pytest_tfgrpo.harness.scoring.checks.python import PYTHON
from pytest_tfgrpo.harness.scoring.checks.structured import JSON, JSON_SCHEMA
from pytest_tfgrpo.harness.scoring.checks.tests import TESTS

KINDS: dict[str, CheckKind] = {
    kind.name: kind
    for kind in (
        EXACT,
        CONTAINS,
        REGEX,
        NUMBER_KIND,
        MATH,
        JSON,
        JSON_SCHEMA,
        TOOL_CALLS,
        FILE,
        COMMAND,
        TESTS,
        PYTHON,
    )
}
"""The built-in kinds by name; more come from the hook ``pytest_tfgrpo_checks``."""


def evaluate(
    checks: Iterable[Check], context: CheckContext, kinds: Mapping[str, CheckKind]
) -> tuple[CheckResult, ...]:
    """Return what each check found, in order; raises CheckError when one itself breaks."""
    return tuple(_evaluate(check, context, kinds[check.kind]) for check in checks)


def _evaluate(check: Check, context: CheckContext, kind: CheckKind) -> CheckResult:
    try:
        result = kind.evaluate(check, context)
    except CheckError:
        raise
    except BaseException as error:  # on the engine's thread no interrupt is a person's
        raise CheckError(f"check {kind.name!r} raised {error!r}") from error
    if not isinstance(result, CheckResult) or not 0 <= result.credit <= 1:
        raise CheckError(
            f"check {kind.name!r} must return a CheckResult with credit in [0, 1], not {result!r}"
        )
    return result


def is_blocking(checks: Iterable[Check], kinds: Mapping[str, CheckKind]) -> bool:
    """Return whether one of `checks` must be evaluated on a thread."""
    return any(kinds[check.kind].blocking for check in checks)
