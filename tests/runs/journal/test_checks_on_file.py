"""Parameters of checks that a file had."""

from typing import Any

import pytest

from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.runs.journal.checks_on_file import AS_WRITTEN, misfit


@pytest.mark.parametrize(
    ("kind", "params", "fits"),
    [
        ("exact", {"value": "3"}, True),
        ("exact", {"value": 3}, False),
        ("exact", {}, False),
        ("number", {"value": 3}, True),
        ("number", {"value": "many"}, False),
        ("contains", {"value": []}, False),
        ("own", {"value": []}, True),
        ("python", {"nothing": 1}, True),
    ],
)
def test_only_parameters_that_stay_as_written_must_fit_their_kind(kind: str, params: Any, fits: bool) -> None:
    why = misfit(Check(kind=kind, params=params))
    assert (why is None) is fits
    assert fits or str(why).startswith(f"a check of kind '{kind}': ")


@pytest.mark.parametrize("kind", AS_WRITTEN)
def test_a_check_of_each_of_these_kinds_is_looked_at(kind: str) -> None:
    assert kind in load_schema("scenario")["$defs"]
    assert misfit(Check(kind=kind, params={"no such parameter": 1})) is not None
