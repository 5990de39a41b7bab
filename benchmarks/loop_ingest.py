"""What taking spans in costs of the processor, against redacting the same texts alone, in one run.

    python benchmarks/loop_ingest.py [--quick]

Conversations of 20 turns, each of whose spans repeats all messages before it, and questions that never come
again. Taking in is reading a request of OTLP/JSON, opting out, redacting, encoding, and storing in the
embedded bus, synced; "door" is the same without reading. Redacting alone is `Redactor.text` on each text of
the spans. Rounds alternate, each with new words; a line has milliseconds of the processor for a megabyte of
texts, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import Redactor
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan

KEY = b"k" * 32
BAR = 2.0
CHANCE = random.Random(0)
WORDS = [
    word
    for path in sorted(Path(__file__).parent.parent.glob("docs/*.md"))
    for word in path.read_text().split()
]


def said(words: int) -> str:
    """Return words of the documentation, with an address now and then."""
    text = " ".join(CHANCE.choices(WORDS, k=words))
    return f"{text} ann{CHANCE.randrange(10**6)}@example.com" if CHANCE.random() < 0.1 else text


def request(spans: list[dict[str, Json]]) -> bytes:
    """Return an export request of OTLP/JSON."""
    resource = {"attributes": attributes({"service.name": "shop", "service.version": "1.2.3"})}
    value = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}
    return json.dumps(value).encode()


def attributes(values: dict[str, Json]) -> list[Json]:
    """Return attributes as OTLP/JSON has them."""
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for key, value in values.items()
    ]


def span(trace: str, messages: list[Json], answer: Json) -> dict[str, Json]:
    """Return the span of a model's call."""
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small-model",
        "gen_ai.conversation.id": f"chat-{trace[:6]}",
        "user.id": f"user-{trace[:4]}",
        "gen_ai.usage.input_tokens": 100 * len(messages),
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps([answer]),
    }
    return {
        "traceId": trace,
        "spanId": f"{CHANCE.getrandbits(64) or 1:016x}",
        "name": "chat small-model",
        "startTimeUnixNano": "1764000000000000000",
        "endTimeUnixNano": "1764000001000000000",
        "attributes": attributes(values),
    }


def message(role: str, words: int) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": said(words)}]}


def conversations(count: int) -> Iterator[bytes]:
    """Yield requests with a conversation of 20 turns each."""
    for _ in range(count):
        trace = f"{CHANCE.getrandbits(128):032x}"
        messages, spans = [message("system", 150)], []
        for _ in range(20):
            messages.append(message("user", 40))
            answer = message("assistant", 80)
            spans.append(span(trace, messages, answer))
            messages.append(answer)
        yield request(spans)


def questions(count: int) -> Iterator[bytes]:
    """Yield requests with 50 questions each."""
    for _ in range(count):
        spans = [
            span(f"{CHANCE.getrandbits(128):032x}", [message("user", 120)], message("assistant", 80))
            for _ in range(50)
        ]
        yield request(spans)


def texts(spans: list[TraceSpan]) -> list[str]:
    """Return the texts of spans."""
    return [
        text
        for one in spans
        for text in (one.name, *one.attributes.values(), *one.resource.values())
        if isinstance(text, str)
    ]


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the milliseconds of the processor, of all threads, that `work` takes."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def measure(
    title: str, made: Callable[[int], Iterator[bytes]], rounds: int, count: int, intake: Intake
) -> None:
    """Print what a kind of traffic costs."""
    redactor = Redactor(KEY)
    sizes, alone, door, whole = [], [], [], []
    for _ in range(rounds):
        bodies = list(made(count))
        read = [[one for one in found if isinstance(one, TraceSpan)] for found in map(reading, bodies)]
        plain = [texts(spans) for spans in read]
        sizes.append(sum(len(text) for found in plain for text in found) / 1e6)
        alone.append(cpu_ms(lambda: [redactor.text(text) for found in plain for text in found]))  # noqa: B023
        whole.append(cpu_ms(lambda: [intake.spans(reading(body)) for body in bodies]))  # noqa: B023
        bodies = list(made(count))
        read = [[one for one in found if isinstance(one, TraceSpan)] for found in map(reading, bodies)]
        door.append(cpu_ms(lambda: [intake.spans(spans) for spans in read]))  # noqa: B023
    for what, ours in (("door", door), ("with reading", whole)):
        ratios = sorted(mine / other for mine, other in zip(ours, alone, strict=True))
        ratio = statistics.median(ratios)
        each = [
            statistics.median(ms / size for ms, size in zip(row, sizes, strict=True)) for row in (ours, alone)
        ]
        print(
            f"{title}, {what:<14}{each[0]:>8.1f} ms/MB, redacting {each[1]:>6.1f} ms/MB   "
            f"{ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})  bar {BAR:.2f} "
            f"{'ok' if ratio <= BAR else 'MISSED'}",
            flush=True,
        )


def reading(body: bytes) -> list[TraceSpan]:
    return [one for one in read_otlp(body, form="json", place="otlp") if isinstance(one, TraceSpan)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few requests")
    rounds, count = (3, 4) if parser.parse_args().quick else (9, 20)
    with tempfile.TemporaryDirectory() as name:
        bus = open_embedded(Path(name) / "bus.db")
        scrubber = LoopScrubber(KEY)
        intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
        measure("conversations", conversations, rounds, count, intake)
        measure("questions    ", questions, rounds, count, intake)
        bus.close()


if __name__ == "__main__":
    main()
