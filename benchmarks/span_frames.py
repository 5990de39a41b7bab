"""Run rollouts whose frames are the agent's spans, and rollouts whose agent returns the same frames.

    python benchmarks/span_frames.py [ROUNDS [ROLLOUTS]]

An agent makes a model call and two tool calls in each rollout. `returned` writes no spans, `both` writes the
same spans to a tracer provider that nobody reads, as an instrumented agent does anyway, and `spans` has them
read. The ratio to `both` is what it costs to read them. Processor time is that of the pytest process with all
its threads; on a busy machine the least of each is steadier than the median.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from telemetry import make_project

AGENT = """
READ, WRITES, RETURNS = {read}, {writes}, {returns}
TEXT = "How many words are in the text? " * 5

if WRITES:
    import json
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider()
    if READ:
        trace.set_tracer_provider(provider)
    tracer = provider.get_tracer("toy")
    ASKED = json.dumps([{{"role": "user", "parts": [{{"type": "text", "content": TEXT}}]}}])
    SAID = json.dumps([{{"parts": [{{"type": "text", "content": "3"}}], "finish_reason": "stop"}}])


def spans():
    with tracer.start_as_current_span("invoke_agent toy") as span:
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        with tracer.start_as_current_span("chat m-1") as span:
            span.set_attributes({{
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1",
                "gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 2,
                "gen_ai.input.messages": ASKED, "gen_ai.output.messages": SAID,
            }})
        for place in range(2):
            with tracer.start_as_current_span("execute_tool count_words") as span:
                span.set_attributes({{
                    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "count_words",
                    "gen_ai.tool.call.arguments": '{{"text": "a b c"}}', "gen_ai.tool.call.result": "3",
                }})


async def solve(context):
    if WRITES:
        spans()
    if not RETURNS:
        return "3"
    given = {{"text": "a b c"}}
    tool = {{"kind": "tool", "name": "count_words", "input": given, "output": "3", "latency_ms": 0.1}}
    started = "2026-01-01T00:00:00.000Z"
    model = {{"kind": "model", "name": "m-1", "input": TEXT, "output": "3", "tokens": 42, "latency_ms": 0.1}}
    frames = [{{**frame, "started_at": started}} for frame in (model, tool, tool)]
    return {{"answer": "3", "frames": frames}}
"""
KINDS = {
    "returned": {"read": False, "writes": False, "returns": True},
    "both": {"read": False, "writes": True, "returns": True},
    "spans": {"read": True, "writes": True, "returns": False},
}


def processor_s(folder: Path) -> float:
    """Return the processor time of a run."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tfgrpo", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, output
    return used.ru_utime + used.ru_stime


def main(rounds: int = 5, rollouts: int = 10_000) -> None:
    """Print medians, and the ratios of what is read from spans to what the agent returned."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        for kind, given in KINDS.items():
            (Path(folder) / kind).mkdir()
            make_project(Path(folder) / kind, AGENT.format(**given), rollouts)
        for turn in range(rounds + 1):
            for kind in KINDS if turn % 2 else reversed(KINDS):
                measured = processor_s(Path(folder) / kind)
                if turn:  # the first one compiles modules
                    found[kind].append(measured)
    for kind, times in found.items():
        every = " ".join(f"{time:.2f}" for time in times)
        print(f"{kind:<9} median {statistics.median(times):.2f} s, least {min(times):.2f} s  ({every})")
    for kind in ("both", "returned"):
        median = statistics.median(found["spans"]) / statistics.median(found[kind])
        least = min(found["spans"]) / min(found[kind])
        print(f"spans / {kind:<9} {median:.3f} by medians, {least:.3f} by the least")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
