"""Loops with versions, deployments and decisions, for the page that tells of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.events import MODEL_DEPLOYED, derived_id
from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.tallies import ArmPair, RampFigures, RewardCounts
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.storage.event_store import BusEvent
from support.deployments import minute
from support.learned_runs import NOON, learned, lesson

V1 = DeployCandidate(version="v1")
PASSED = Validation(
    outcome="needs_approval",
    reasons=("no safety suite was tried",),
    benchmark_passed=True,
    safety_checks_passed=False,
    performance_regression=False,
    holdout_reward=0.7,
    improvement_over_baseline=0.08,
    improvement_low=0.01,
    open_safety=("no safety suite was tried",),
)


def figures(canary: float, control: float, difference: float, half: float) -> RampFigures:
    """Return what is known of a ramp after so many sessions in each arm."""
    return RampFigures(
        counts=RewardCounts(rewarded=ArmPair(canary, control), fresh=ArmPair(canary // 2, control // 2)),
        difference=difference,
        low=difference - half,
        high=difference + half,
        error_rate=ArmPair(0.01, 0.02),
        p95_s=ArmPair(1.5, 1.25),
    )


def decided(at: float, found: RampFigures | None = None, by: str = "", reason: str = "") -> DeployDecision:
    """Return a decision at a minute after noon."""
    evidence: Mapping[str, Any] = {} if found is None else found.evidence()
    return DeployDecision(at=minute(at), by=by, reason=reason, evidence=evidence)


def fill(bus: Bus, store: Path, said: str = "it is better") -> None:
    """Deploy v2, which a job learned; roll v3 back; and let v4 wait, held. `said` is what people write."""
    policies, deployments = Policies(bus, FolderArtifacts(store)), Deployments(bus)
    for n, parent in enumerate(("v1", "v2")):
        kept = (lesson(0),) if n else ()
        policies.add(
            learned(
                n, Operation(kind="add", experience=lesson(n), groups=(f"run-{n}.e1.evidence-g1",)), kept=kept
            ),
            job=f"job-{n}",
            parent=parent,
            validation=PASSED,
            dataset={"counts": {"attempts": 40 + n}},
            attempts={"g1": ("t1", "t2")},
        )
    policies.judge("v2", safe=True, score=0.9, by="grace", reason=said, at=NOON)
    policies.decide("v2", "approved", by="ada", reason=said, at=NOON)
    v2 = DeployCandidate(
        version="v2",
        benchmark_passed=True,
        safety_checks_passed=True,
        improvement=0.08,
        job=derived_id("job-0"),
        model_info={"training_samples": 40, "final_reward": 0.7},
    )
    deployments.start(v2, V1, decided(0, by="ada", reason=said))
    for at, sessions in ((60, 40), (120, 90), (240, 200), (270, 300)):
        reason = "its time is over, with enough sessions and no alarm"
        deployments.advance(
            "v2", decided(at, figures(sessions, 2 * sessions, 0.04, 9 / sessions), "", reason)
        )
    deployments.start(DeployCandidate(version="v3"), v2, decided(300, by="grace", reason=said), override=True)
    deployments.roll_back("v3", decided(330, reason="reward: -0.210, at most -0.020 against the control"))
    v4 = DeployCandidate(version="v4", benchmark_passed=True, safety_checks_passed=True, approved_by="ada")
    deployments.start(v4, v2, decided(400))
    deployments.hold("v4", decided(430, figures(31, 600, 0.01, 0.3), "bob", said))


def deployed(n: int, **changes: Any) -> BusEvent:
    """Return the event of a deployment, of which five belong together; `changes` are of its metadata."""
    state = ("canary", "canary", "held", "canary", "rolled_back")[n % 5]
    share = (5.0, 10.0, 10.0, 25.0, 0.0)[n % 5]
    payload = {
        "deployment_id": derived_id("deployment", str(n // 5)),
        "training_job_id": derived_id("job", str(n // 5)),
        "timestamp": minute(n),
        "model_info": {"model_id": f"v{n // 5 + 2}"},
        "deployment_config": {"rollout_strategy": "canary", "traffic_percentage": share},
        "validation_results": {"benchmark_passed": True},
        "metadata": {"deployed_by": "tfgrpo", "state": state, "reason": f"reason {n}", **changes},
    }
    return deployed_as(n, payload)


def deployed_as(n: int, payload: object) -> BusEvent:
    """Return an event of the stream of deployments, whatever it holds."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return BusEvent(id=derived_id("event", str(n)), subject=MODEL_DEPLOYED, time=minute(n), data=data)


class _Reader(HTMLParser):
    """Takes down what a person reads: a line for each row, heading and paragraph."""

    LINES = frozenset({"h1", "h2", "h3", "p", "tr", "summary", "li", "figcaption", "text"})
    WORDS = frozenset({"small", "br", "td", "th"})

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("style", "script", "title")
        if tag in ("td", "th") and not self.text.endswith("\n"):
            self.text += " |"
        self.text += "\n" if tag in self.LINES else " " if tag in self.WORDS else ""

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script", "title")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += " ".join(data.split(" ")).replace("\n", " " * bool(data.strip()))


def read_aloud(page: str) -> str:
    """Return what a person reads on a page, line by line."""
    reader = _Reader()
    reader.feed(page)
    lines = (" ".join(row.split()) for row in reader.text.splitlines())
    return "".join(f"{row}\n" for row in lines if row)
