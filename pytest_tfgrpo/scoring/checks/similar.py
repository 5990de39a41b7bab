"""The check that an answer is like a text; the only file that imports ``rapidfuzz``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, CheckKind, builtin_params, verdict
from pytest_tfgrpo.scoring.checks.signs import as_spelled, composed

MIN = 0.8
INSTALL = "install it with: pip install 'pytest-tfgrpo[similarity]'"


@cache
def _is_installed() -> bool:
    return find_spec("rapidfuzz") is not None


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    if not _is_installed():
        raise ValueError(f"check 'similar' needs a library that is not here; {INSTALL}")
    return params


def similarity(wanted: str, got: str, *, by: str = "letters") -> float:
    """Return how alike two texts are, 0 to 1: 1 less the share of letters to insert or delete.

    White space at both ends does not count; `by` words sorts the words of both first.
    """
    from rapidfuzz.distance import Indel

    if by == "words":
        wanted, got = (" ".join(sorted(text.split())) for text in (wanted, got))
    return Indel.normalized_similarity(wanted.strip(), got.strip())


def _similar(check: Check, context: CheckContext) -> CheckResult:
    wanted = composed(check.params["value"])
    got = as_spelled(context.answer, wanted)
    if check.params.get("ignore_case", True):
        wanted, got = wanted.casefold(), got.casefold()
    least = check.params.get("min", MIN)
    found = similarity(wanted, got, by=check.params.get("by", "letters"))
    reason = f"similarity {found:.3f}, at least {least:g} required: expected {short(check.params['value'])}"
    return verdict(check, None if found >= least else f"{reason}, got {short(context.answer)}")


SIMILAR = CheckKind(
    name="similar",
    params=builtin_params("similar"),
    evaluate=_similar,
    prepare=_prepare,
    answers=lambda check: (check.params["value"],),
)
