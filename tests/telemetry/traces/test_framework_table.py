"""The table of frameworks in the documentation has what the recordings were made with."""

import re

import pytest
from support import ROOT
from support.traces.framework_table import CASES, ROWS, gaps_of
from support.traces.recording.frameworks import FRAMEWORKS

RECORDERS = ROOT / "tests" / "telemetry" / "traces" / "recorders"


def test_every_recorded_framework_is_in_the_table() -> None:
    assert ROWS.keys() == FRAMEWORKS.keys()
    assert CASES.keys() == {case for one in FRAMEWORKS.values() for case in one.cases}


@pytest.mark.parametrize("key", ROWS)
def test_what_the_table_says_to_write_is_what_was_recorded(key: str) -> None:
    row, framework = ROWS[key], FRAMEWORKS[key]
    script = (RECORDERS / framework.script).read_text(encoding="utf-8")
    assert not row.package or row.package in {one.partition("==")[0] for one in framework.packages}
    assert row.module in script
    names = re.findall(r"[A-Za-z_.]{6,}", row.line) + re.findall(r"`(\w+)`", row.content)
    assert [name for name in names if name.strip(".") not in script] == []


def test_what_upstream_does_not_emit_is_named_with_its_reason() -> None:
    assert gaps_of("langchain-openinference") == "nothing"
    assert gaps_of("crewai-openinference").startswith("turns, order (calls of the model have no spans)")
    assert gaps_of("google-adk") == "user (no span has the user)"
