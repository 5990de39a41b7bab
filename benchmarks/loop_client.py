"""A call of the loop's client against ``json.dumps`` of the same event, in one run.

    python benchmarks/loop_client.py [--quick]

The client's thread sends to a service in another process meanwhile. Processor time of the calling thread, in
microseconds a call: medians of rounds that alternate, and the median of the rounds' ratios; and what the
calling thread waits for one call.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from pytest_tfgrpo.production.client import LoopClient

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3303"
SERVICE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *parts):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def trajectory(turns: int) -> dict[str, Any]:
    """Return a trajectory with turns of about 400 bytes."""
    turn = {
        "observation": {"type": "user_message", "content": "Which orders are late? " * 6},
        "action": {"type": "tool_call", "tool_name": "orders", "tool_args": {"late": True, "days": 30}},
        "result": {"success": True, "output": "Orders 17, 23 and 42. " * 6, "execution_time_ms": 41.5},
    }
    return {
        "trajectory_id": ID,
        "session_id": "chat-17",
        "agent_id": "support-bot",
        "start_timestamp": "2025-12-08T12:00:00Z",
        "end_timestamp": "2025-12-08T12:05:30Z",
        "turns": [{"turn_id": number, **turn} for number in range(turns)],
        "task_context": {"domain": "general", "instructions": "Which orders are late?"},
    }


def cpu_us(call: Callable[[], object], count: int) -> float:
    """Return microseconds of the thread's processor time a call."""
    started = time.thread_time_ns()
    for _ in range(count):
        call()
    return (time.thread_time_ns() - started) / count / 1000


def waits_us(call: Callable[[], object], count: int) -> list[float]:
    """Return microseconds on the clock of each call."""
    found = []
    for _ in range(count):
        started = time.perf_counter_ns()
        call()
        found.append((time.perf_counter_ns() - started) / 1000)
    return sorted(found)


def measure(client: LoopClient, rounds: int) -> None:
    """Print a line for each kind of event."""
    little = {
        "feedback_id": ID,
        "trajectory_id": ID,
        "timestamp": "2025-12-08T12:07:00.000Z",
        "type": "rating",
        "rating": 4,
        "text": "close enough, but two orders are missing",
        "session_id": "chat-17",
    }
    given = {key: little[key] for key in ("rating", "text", "session_id")}
    thumb = {key: little[key] for key in ("feedback_id", "trajectory_id", "timestamp")} | {
        "type": "thumbs_up"
    }
    five, many = trajectory(5), trajectory(50)
    cases: list[tuple[str, object, Callable[[], object], int]] = [
        ("thumbs up", thumb, lambda: client.feedback(ID, "thumbs_up"), 4000),
        ("rating with text", little, lambda: client.feedback(ID, "rating", **given), 4000),  # type: ignore[arg-type]
        ("trajectory of 5 turns", five, lambda: client.trajectory(five), 1000),
        ("trajectory of 50 turns", many, lambda: client.trajectory(many), 100),
    ]
    print(f"{'event':<24}{'bytes':>8}{'dumps us':>10}{'call us':>9}{'ratio':>7}{'p50 us':>8}{'p99 us':>8}")
    for name, event, call, count in cases:
        pairs = []
        for _ in range(rounds):
            dumps = cpu_us(lambda event=event: json.dumps(event), count)  # type: ignore[misc]
            pairs.append((dumps, cpu_us(call, count)))
            client.flush(30)
        waits = waits_us(call, count)
        client.flush(30)
        dumps, called = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        size = len(json.dumps(event))
        half, last = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
        print(f"{name:<24}{size:>8}{dumps:>10.1f}{called:>9.1f}{ratio:>7.2f}{half:>8.1f}{last:>8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few rounds")
    options = parser.parse_args()
    command = [sys.executable, "-c", SERVICE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        with LoopClient(f"http://127.0.0.1:{service.stdout.readline().strip()}") as client:
            measure(client, 5 if options.quick else 25)
        print(client.counts())
        service.terminate()


if __name__ == "__main__":
    main()
