"""What the tests of telemetry/traces/test_recorded_spans.py share with the slow ones."""

from io import BytesIO

from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, Dialect
from support import ROOT

RECORDED = ROOT / "tests" / "telemetry" / "traces" / "recorded"
FILES = sorted(path.name for path in RECORDED.glob("*.jsonl"))


def runs_of(
    *lines: bytes, dialect: Dialect = read_span, whole_trace: bool = True
) -> tuple[list[AgentRun], SpanForest]:
    forest = SpanForest(dialect)
    forest.take(read_otlp_lines(BytesIO(b"".join(lines)), "spans.jsonl"))
    return forest.runs(whole_trace=whole_trace), forest


def lines_of(name: str) -> list[bytes]:
    return (RECORDED / name).read_bytes().splitlines(keepends=True)
