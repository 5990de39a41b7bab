"""A loop in one process, and what comes of a run with a user in a session, in any order."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.events import FEEDBACK, TRAJECTORY
from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.opt_out_sweep import OptOutSweep
from pytest_tfgrpo.production.view.view import LoopView
from support.assemblers import assembler
from support.buses import Clock
from support.feedback.forget import settled
from support.loop_events import feedback, trajectory
from support.loop_spans import AGENT, agent_trace, span_id, trace_id

USER, OTHER = "cust-9938", "cust-1177"
WORDS = "the lighthouse keeper said"
KINDS = ("turn", "root", "orphan", "refused", "direct", "said", "claim")


class WholeLoop:
    """Door, assembler, evaluator and sweep over one bus."""

    def __init__(self, bus: Bus, scrubber: LoopScrubber, folder: Path, clock: Clock) -> None:
        self.bus, self.scrubber, self.clock = bus, scrubber, clock
        self.opt_outs = OptOuts(bus, scrubber)
        self.intake = Intake(bus, scrubber, self.opt_outs)
        self.view = LoopView(folder / "view.db", clock)
        self.assembler = assembler(
            bus, clock, refuses=self.opt_outs.withdrawn, forgo=DroppedRuns(bus, scrubber).forgo
        )
        self.evaluator = Evaluator(bus, self.view, "one", settle_s=0.0)
        self.sweep = OptOutSweep(bus, self.view, scrubber, self.opt_outs, clock)

    def bring(self, number: int, kind: str, session: str, user: str, text: str) -> None:
        """Bring one of the things that come of a run with a user in a session."""
        turn, *between, root = agent_trace(number)
        said, named = {"session.id": session, "note": text}, {"llm.user": user}
        turns = [replace(turn, attributes={**turn.attributes, **said}), *between]
        steps: dict[str, Callable[[], object]] = {
            "turn": lambda: self.intake.spans(turns),
            "root": lambda: self.intake.spans([replace(root, attributes={**root.attributes, **named})]),
            "orphan": lambda: self._feedback(f"o{number}", text, session_id=session),
            "refused": lambda: self._feedback(f"r{number}", text, session_id=session, type="x"),
            "direct": lambda: self._trajectory(f"d{number}", session, text),
            "said": lambda: self._feedback(f"d{number}", text),
            "claim": lambda: self._feedback(
                f"c{number}", text, trajectory_id=trajectory_id(trace_id(number), span_id(AGENT))
            ),
        }
        steps[kind]()

    def _feedback(self, name: str, text: str, **more: str) -> None:
        said = json.loads(feedback(name, "correction", name, text=text).data)
        self.intake.payloads(FEEDBACK, [{**said, **more}])

    def _trajectory(self, name: str, session: str, text: str) -> None:
        self.intake.payloads(
            TRAJECTORY, [json.loads(trajectory(name, session=session, text=text, task_status="unknown").data)]
        )

    def work(self) -> None:
        """Do all that is due."""
        for _ in range(3):
            self.clock.now += 100.0
            for role in (self.assembler, self.sweep):
                while role.step():
                    pass
            settled(self.evaluator)

    def close(self) -> None:
        for role in (self.assembler, self.evaluator, self.sweep):
            role.close()
        self.view.close()


def left_of(needles: Iterable[str], folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [
        f"{needle} in {file.name}"
        for file in files
        for needle in needles
        if needle.encode() in file.read_bytes()
    ]


def bring_all(
    loop: WholeLoop, orders: Sequence[Sequence[str]], *, between: Callable[[], object] = lambda: None
) -> list[str]:
    """Bring the things of one session in each order; return what is not to be found."""
    gone = [USER, WORDS]
    for number, order in enumerate(orders, 1):
        gone += [session := f"chat-gone-{number}-x"]
        for kind in order:
            loop.bring(number, kind, session, USER, f"{WORDS} {number}")
        if number % 3 == 1:
            between()
    for kind in KINDS:
        loop.bring(9999, kind, "chat-kept-x", OTHER, "quite another thing")
    return gone
