"""The page of the loop: versions over time, both arms at each decision, decisions, lessons."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.browser_runs import HOSTILE
from support.loop_events import publish, trajectory
from support.loop_stories import V1, decided, deployed, deployed_as, fill, read_aloud

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import ROW
from pytest_tfgrpo.production.report.figures import report_of
from pytest_tfgrpo.production.report.page import transitions
from pytest_tfgrpo.production.report.page.drawings import MOST, bounds
from pytest_tfgrpo.production.report.page.page import loop_page, story_of
from pytest_tfgrpo.production.report.page.transitions import StepEvidence, transitions_of
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE, change

MakePage = Callable[..., str]


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LoopView]:
    with closing(LoopView(tmp_path / "view.db")) as view:
        yield view


@pytest.fixture
def page(bus: Bus, view: LoopView, tmp_path: Path) -> MakePage:
    """Return what makes the page of the bus, with the versions of a store."""

    def made(store: str = "") -> str:
        view.catch_up(bus)
        return loop_page("shop", report_of(bus, view, 1000), story_of(bus, store or str(tmp_path / "jobs")))

    return made


def test_a_reviewer_reads_who_decided_what_on_which_figures(
    bus: Bus, page: MakePage, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    publish(bus, [trajectory("a"), trajectory("b")])
    fill(bus, tmp_path / "jobs")
    found = page()
    golden("loop-page.txt", read_aloud(found))
    assert page() == found, "equal streams give an equal page"


def test_a_loop_without_any_version_says_so(page: MakePage) -> None:
    text = read_aloud(page())
    for said in (
        "Live v1\n",
        "There is no version yet: no job has made one, and none was deployed.",
        "No version was deployed yet.",
        "Nobody has approved, rejected, judged or pinned a version",
        "No version that can be read has lessons.",
    ):
        assert said in text


def test_a_thousand_events_are_all_in_the_tables_and_the_newest_are_drawn(bus: Bus, page: MakePage) -> None:
    bus.publish([deployed(n) for n in range(1000)])
    found = page()
    text = read_aloud(found)
    assert all(f"the loop: reason {n} |" in text for n in range(1000))
    assert found.count('<rect class="step') == MOST
    assert "v201 rolled back, 0 %</title>" in found
    assert f"The {1000 - MOST} older transitions are only in the tables." in text
    assert "200 deployments" in text
    assert len(found) < 2_000_000


def test_of_too_many_events_the_newest_are_shown(
    bus: Bus, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transitions, "MOST", 10)
    bus.publish([deployed(n) for n in range(25)])
    text = read_aloud(page())
    assert "15 older transitions are not shown." in text
    assert ("reason 15" in text, "reason 14" in text) == (True, False)


def test_a_rollback_without_figures_says_so_and_is_shown(bus: Bus, page: MakePage) -> None:
    bus.publish([deployed(n) for n in range(5)])
    rows = [row for row in read_aloud(page()).splitlines() if "reason 4" in row]
    assert rows == ["2026-01-01 12:04 | rolled back the loop: reason 4 | the event has no figures"]


@pytest.mark.parametrize(
    "evidence",
    [
        [],
        "x",
        7,
        {"sessions": 3, "reward": [], "error_rate": None},
        {"sessions": {"canary": "many", "control": 1}, "reward": {"difference": "x", "low": True}},
        {"sessions": {"canary": 10**400, "control": 1}, "violations": 10**400},
        {"sessions": {"canary": math.nan, "control": 1}, "reward": {"difference": math.inf}},
    ],
)
def test_evidence_that_is_not_as_expected_is_unknown(bus: Bus, page: MakePage, evidence: Any) -> None:
    bus.publish([deployed(0), deployed(1, evidence=evidence)])
    (row,) = [row for row in read_aloud(page()).splitlines() if "reason 1" in row]
    cells = row.split(" | ")[2:]
    assert cells in (["the event has no figures"], ["-", "-", "unknown", "-", "-", "-", "-"])


@pytest.mark.parametrize("payload", [b"\xff", b"[]", {}, {"model_info": {"model_id": 7}}, b"[" * 100_000])
def test_an_event_that_is_no_deployment_is_counted(bus: Bus, page: MakePage, payload: Any) -> None:
    bus.publish([deployed_as(1, payload), deployed(2)])
    text = read_aloud(page())
    assert "1 event of the stream cannot be read and is not shown." in text
    assert "reason 2" in text


def test_hostile_texts_are_inert(bus: Bus, page: MakePage, tmp_path: Path) -> None:
    fill(bus, tmp_path / "jobs", said=HOSTILE)
    payload = json.loads(deployed(1).data)
    payload |= {"deployment_id": HOSTILE, "timestamp": HOSTILE, "training_job_id": HOSTILE}
    payload["model_info"] = {"model_id": HOSTILE}
    payload["metadata"] = dict.fromkeys(("state", "reason", "deployed_by", "previous_model"), HOSTILE)
    payload["deployment_config"]["rollout_strategy"] = HOSTILE
    payload["validation_results"] = {HOSTILE: True}
    publish(bus, [trajectory("a", domain=HOSTILE, metadata={"policy_version": HOSTILE})])
    bus.publish([deployed_as(1, payload)])
    found = page()
    for active in ("<script>window", "<img", "<svg/onload", "\x1b", "\u202e"):
        assert active not in found
    assert found.count("<script") == 1
    assert "window.__hacked = 1" in read_aloud(found)


def test_files_that_cannot_be_read_are_named_in_their_place(bus: Bus, page: MakePage, tmp_path: Path) -> None:
    fill(bus, tmp_path / "jobs")
    (tmp_path / "jobs" / "rl-checkpoints" / "v2" / "policy.json").write_text("{")
    text = read_aloud(page())
    (row,) = [row for row in text.splitlines() if row.startswith("v2 | live")]
    assert "cannot read" in row
    assert "policy.json" in row
    assert "v3: 2 lessons\n" in text, "which of them are new is unknown"
    assert "reward: -0.210" in text


def test_a_store_that_cannot_be_opened_is_said_and_the_rest_is_shown(
    bus: Bus, page: MakePage, tmp_path: Path
) -> None:
    fill(bus, tmp_path / "jobs")
    text = read_aloud(page("nowhere://models"))
    assert "Cannot be read cannot open nowhere://models" in text
    assert "v2 | live" in text
    assert "reward: -0.210" in text


def test_a_row_that_is_damaged_is_said_and_the_rest_is_shown(
    bus: Bus, page: MakePage, tmp_path: Path
) -> None:
    fill(bus, tmp_path / "jobs")
    rows = bus.table(STATE)
    rows.put(ROW, b"{", rows.get(ROW)[1])
    text = read_aloud(page())
    assert "Cannot be read the row 'serving' of the table state" in text
    assert "Live v2" not in text
    assert "reward: -0.210" in text


def test_who_overrode_is_known_from_the_audit(bus: Bus, tmp_path: Path) -> None:
    fill(bus, tmp_path / "jobs")
    found = transitions_of(bus)
    assert [(one.version, one.state, one.steps[0].action) for one in found.deployments] == [
        ("v2", "live", "start"),
        ("v3", "rolled_back", "override"),
        ("v4", "held", "start"),
    ]
    assert [(step.version, step.action) for step in found.deployments[0].steps[-2:]] == [
        ("v2", "finish"),
        ("v1", "retire"),
    ]
    assert [(one.action, one.by, one.was) for one in found.decisions] == [
        ("verdict, safety passed, human evaluation 0.9", "grace", "needs approval"),
        ("approved", "ada", "validated"),
    ]


def test_of_two_transitions_at_once_each_has_its_own_action(bus: Bus) -> None:
    deployments = Deployments(bus)
    deployments.start(DeployCandidate(version="v2"), V1, decided(0), override=True)
    deployments.hold("v2", decided(5, by="ada"))
    deployments.advance("v2", decided(5, by="ada"))
    (found,) = transitions_of(bus).deployments
    assert [(step.state, step.action) for step in found.steps] == [
        ("canary", "override"),
        ("held", "hold"),
        ("canary", "resume"),
    ]


def test_a_version_that_was_removed_says_so(bus: Bus, page: MakePage, tmp_path: Path) -> None:
    fill(bus, tmp_path / "jobs")
    change(bus.table(STATE), "policy.v3", lambda row: (row or b"").replace(b'"needs_approval"', b'"removed"'))
    (row,) = [row for row in read_aloud(page()).splitlines() if row.startswith("v3 | rolled back")]
    assert "version v3 was removed, and its files are gone" in row


def test_bounds_are_drawn_on_one_scale_and_cut_off_at_its_ends() -> None:
    near = bounds(StepEvidence(difference=0.0, low=-0.05, high=0.05))
    far = bounds(StepEvidence(difference=-0.9, low=-1.0, high=1.0))
    assert near is not None
    assert far is not None
    assert near["low"] == near["drop"] == far["drop"]
    assert near["difference"] == near["zero"]
    assert far["low"] == far["difference"] == 5
    assert far["high"] == far["width"] - 5
    assert bounds(StepEvidence(difference=0.1)) is None
