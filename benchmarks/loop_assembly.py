"""How many spans become trajectories in a second, from a stream to a stream of the embedded bus.

    python benchmarks/loop_assembly.py [--quick] [--spans N]

Three kinds of traces: an agent that asks a tool once (5 spans), an agent with 20 turns, each of whose spans
repeats all messages before it, and traces that never end (the assembler holds what it has room for). A line
has spans in a second by the clock and of the processor, the bytes of the spans, and the largest memory of the
process so far beyond what it had before.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.loop_spans import AGENT, ROOT, a_span, agent_trace, spans_event

from pytest_tfgrpo.production.assembly.assembler import Assembler
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan

TURNS, WORDS = 20, 60


def conversation(trace: int) -> list[TraceSpan]:
    """Return the spans of an agent with many turns."""
    said: list[dict[str, object]] = []
    spans = []
    for turn in range(TURNS):
        text = f"turn {turn} of {trace}: " + "word " * WORDS
        said.append({"role": "user", "parts": [{"type": "text", "content": text}]})
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
        given = {"gen_ai.input.messages": json.dumps(said), "gen_ai.output.messages": json.dumps(answer)}
        spans.append(a_span(trace, 10 + turn, "chat", parent=AGENT, attributes=given))
        said += answer
    agent = a_span(trace, AGENT, "invoke_agent", parent=ROOT, lasts=100)
    return [*spans, agent, a_span(trace, ROOT, lasts=100)]


def open_trace(trace: int) -> list[TraceSpan]:
    """Return spans of an agent whose root never comes."""
    return agent_trace(trace)[:-1]


def measure(name: str, make: Callable[[int], list[TraceSpan]], spans: int) -> None:
    """Print a line for traces of one kind."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        bus = open_embedded(Path(folder) / "bus.db")
        total = size = 0
        traces = count(1)
        while total < spans:
            batch = [make(trace) for trace in islice(traces, 100)]
            events = [spans_event(*part) for found in batch for part in parts(found)]
            bus.publish(events)
            total += sum(map(len, batch))
            size += sum(len(event.data) for event in events)
        worker = Assembler(bus, "benchmark")
        wall, processor = time.perf_counter(), time.process_time()
        while worker.step():
            pass
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        made = bus.last("RL_TRAJECTORIES")
        worker.close()
        bus.close()
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{name:14} {total:8,} spans {size / 1e6:7.1f} MB {made:7,} trajectories  {total / wall:8,.0f}/s"
        f" {total / processor:8,.0f}/s of the processor {size / 1e6 / processor:5.1f} MB/s {memory:+6.0f} MiB"
    )


def parts(spans: list[TraceSpan]) -> Iterator[list[TraceSpan]]:
    """Yield spans as an exporter sends them: what ended by then."""
    middle = len(spans) // 2
    yield spans[:middle]
    yield spans[middle:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--spans", type=int, default=100_000)
    args = parser.parse_args()
    spans = 5000 if args.quick else args.spans
    measure("one tool", agent_trace, spans)
    measure("20 turns", conversation, spans // 4)
    measure("never ends", open_trace, spans)


if __name__ == "__main__":
    main()
