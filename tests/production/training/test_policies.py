"""The versions of a loop: names, files, where they stand, and what their lessons rest on."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_pack
from support.buses import EmbeddedPlace
from support.learned_runs import NOON, learned, lesson

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.lessons import Experience, Library, Operation
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.library.library import empty, load_library
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import NO_JOB
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.versions import policies as policies_module
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts, open_artifacts
from pytest_tfgrpo.production.training.versions.deployable import candidate_of, next_ramp
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.policy import PolicyVersion
from pytest_tfgrpo.production.training.versions.retention import to_remove
from pytest_tfgrpo.production.training.versions.rows import VersionRow
from pytest_tfgrpo.production.training.versions.sources import lesson_sources
from pytest_tfgrpo.production.training.versions.trace import trace_lines
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.storage.event_store import STATE

OPEN = Validation(
    outcome="needs_approval",
    reasons=("no safety suite was tried",),
    benchmark_scores={"text": 0.7},
    benchmark_passed=True,
    safety_checks_passed=False,
    performance_regression=False,
    holdout_reward=0.7,
    improvement_over_baseline=0.2,
)
ADA = {"by": "ada", "reason": "it is good", "at": NOON}
PASSED = replace(OPEN, outcome="validated", reasons=(), safety_checks_passed=True, improvement_low=0.05)
EVIDENCE = {"g1": ("t1", "t2"), "g2": ("t3",)}


@pytest.fixture
def bus(embedded: EmbeddedPlace) -> Bus:
    return embedded.open()


@pytest.fixture
def policies(bus: Bus, tmp_path: Path) -> Policies:
    return Policies(bus, FolderArtifacts(tmp_path / "training"))


def add(
    policies: Policies,
    n: int,
    *operations: Operation,
    parent: str = "v1",
    validation: Validation = OPEN,
    **run: Any,
) -> PolicyVersion:
    return policies.add(
        learned(n, *operations, **run),
        job=f"job-{n}",
        parent=parent,
        validation=validation,
        dataset={"counts": {"attempts": 4, "groups": 2}},
        attempts=EVIDENCE,
    )


def adds(one: Experience, *groups: str, targets: tuple[str, ...] = ()) -> Operation:
    return Operation(kind="update" if targets else "add", experience=one, groups=groups, targets=targets)


def folder(policies: Policies, name: str) -> Path:
    return Path(policies.place(name))


def library(policies: Policies, name: str, folder: Path) -> Library:
    policies.save_library(name, folder / "library.json")
    return load_library(folder / "library.json")


def test_the_first_job_makes_v2_beside_the_agent_without_lessons(policies: Policies, tmp_path: Path) -> None:
    assert library(policies, "v1", tmp_path).experiences == ()
    assert (policies.listed(), policies.deployed()) == ([], "v1")
    version = add(policies, 0, adds(lesson(0)))
    rows = [(row.name, row.job, row.state) for row in policies.listed()]
    assert rows == [("v1", "", "approved"), ("v2", "job-0", "needs_approval")]
    assert policies.deployed() == "v1"
    assert (version.name, version.parents, version.model, version.lessons) == ("v2", ("v1",), "small", 1)
    assert policies.read("v2") == version
    first = policies.read("v1")
    assert (first.model, first.library, first.lessons) == ("small", empty().hash, 0)
    assert first.content != version.content
    assert library(policies, "v2", tmp_path).hash == version.library
    assert library(policies, "v1", tmp_path).experiences == ()


def test_files_of_versions_fit_their_schema(policies: Policies) -> None:
    add(policies, 0, adds(lesson(0)))
    for name in ("v1", "v2"):
        value = json.loads((folder(policies, name) / "policy.json").read_text())
        assert violations("policy", value) == []
    value["content"] = "x"
    assert violations("policy", value)


def test_a_job_that_is_added_again_keeps_its_name(policies: Policies) -> None:
    first = add(policies, 0, adds(lesson(0)))
    (folder(policies, "v2") / "policy.json").unlink()  # the process died before it wrote this
    assert add(policies, 0, adds(lesson(0))) == first == policies.read("v2")
    assert add(policies, 1, adds(lesson(1))).name == "v3"
    assert [row.name for row in policies.listed()] == ["v1", "v2", "v3"]


def test_versions_are_counted_not_sorted_as_text(policies: Policies) -> None:
    for n in range(10):
        add(policies, n, adds(lesson(n)))
    assert [row.name for row in policies.listed()][-3:] == ["v9", "v10", "v11"]


def test_two_processes_that_claim_at_once_get_two_names(
    embedded: EmbeddedPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Policies(embedded.open(), FolderArtifacts(tmp_path / "training")) for _ in range(2))
    add(one, 0, adds(lesson(0)))
    seen, stale = other.listed, other.listed()
    monkeypatch.setattr(other, "listed", lambda: answers.pop(0) if answers else seen())
    answers = [stale]
    assert add(one, 1, adds(lesson(1))).name == "v3"
    assert add(other, 2, adds(lesson(2))).name == "v4"


def test_a_run_that_did_not_end_is_no_version(policies: Policies) -> None:
    with pytest.raises(StoreError, match="run run-0 is incomplete: no budget is left; resume it"):
        add(policies, 0, adds(lesson(0)), status="incomplete", reason="no budget is left")


def test_the_audit_says_who_approved_a_version(policies: Policies, bus: Bus) -> None:
    add(policies, 0, adds(lesson(0)))
    add(policies, 1, adds(lesson(1)))
    policies.decide("v2", "approved", by="ada", reason="", at="2026-01-02T00:00:00Z")
    policies.decide("v3", "approved", by="grace", reason="read it", at="2026-01-03T00:00:00Z")
    assert (policies.deployed(), policies.row("v3").by) == ("v1", "grace"), "no user met them yet"
    said = [json.loads(event.data) for event in bus.replay("RL_AUDIT")]
    assert said[0] == {
        "action": "policy_approved",
        "what": "v2",
        "actor": "ada",
        "reason": "",
        "was": "needs_approval",
        "validation": to_wire(policies.read("v2").judged),
        "previous": "0" * 64,
    }
    assert [one["what"] for one in said] == ["v2", "v3"]


def test_a_version_whose_job_died_while_it_wrote_it_is_not_whole(policies: Policies) -> None:
    add(policies, 0, adds(lesson(0)))
    add(policies, 1, adds(lesson(1)))
    (folder(policies, "v2") / "policy.json").unlink()
    assert [row.name for row in policies.whole()] == ["v1", "v3"]
    assert list(trace_lines(policies, lesson(1).id))[-1] == "carried by v3"
    with pytest.raises(StoreError, match="run the job of version v2 again"):
        policies.decide("v2", "approved", by="ada", reason="", at=NOON)


def test_a_decision_is_taken_once_and_a_version_that_is_served_is_not_rejected(
    policies: Policies, bus: Bus
) -> None:
    add(policies, 0, adds(lesson(0)))
    policies.decide("v2", "rejected", by="ada", reason="", at=NOON)
    with pytest.raises(StoreError, match="v2 is rejected already, by ada"):
        policies.decide("v2", "rejected", by="grace", reason="", at=NOON)
    assert policies.decide("v2", "approved", by="ada", reason="a fluke", at=NOON).state == "approved"
    deploy(policies, bus, "v2")
    assert policies.deployed() == "v1"
    with pytest.raises(StoreError, match="v2 is served; roll it back first: tfgrpo loop rollback v2"):
        policies.decide("v2", "rejected", by="grace", reason="rude", at=NOON)


def test_a_version_that_is_rejected_while_it_starts_ends_in_one_of_both(
    policies: Policies, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(policies, 0, adds(lesson(0)), validation=PASSED)
    read = candidate_of(policies, "v2")
    policies.decide("v2", "rejected", **ADA)
    with pytest.raises(StoreError, match="somebody decided of v2 meanwhile"):
        Deployments(bus).start(read, candidate_of(policies, "v1"), DeployDecision(at=NOON))
    policies.decide("v2", "approved", **ADA)
    unchanged = Deployments.unchanged

    def starts(deployments: Deployments) -> Any:
        found = unchanged(deployments)
        if not found[0].ramp:
            deploy(policies, bus, "v2")
        return found

    monkeypatch.setattr(Deployments, "unchanged", starts)
    with pytest.raises(StoreError, match="v2 is served; roll it back first"):
        policies.decide("v2", "rejected", **ADA)
    assert policies.row("v2").state == "approved"
    assert json.loads([*bus.replay("RL_AUDIT")][-1].data)["action"] == "deployment_override"


def test_a_version_that_is_rejected_while_the_next_one_is_looked_for_is_not_found(
    policies: Policies, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(policies, 0, adds(lesson(0)), validation=PASSED)
    policies.decide("v2", "approved", **ADA)

    def rejects(self: Policies, name: str) -> bool:
        self.decide(name, "rejected", **ADA)
        return True

    monkeypatch.setattr(Policies, "is_whole", rejects)
    found = next_ramp(policies, Deployments(bus).serving(), automatic=True)
    assert (found.candidate, found.skipped) == (None, {})


def test_places_in_events_are_whole_where_the_store_is_a_relative_folder(
    bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policies = Policies(bus, open_artifacts("store"))
    add(policies, 0, adds(lesson(0)))
    assert policies.place("v2") == f"{tmp_path}/store/rl-checkpoints/v2"
    path = candidate_of(policies, "v2").model_info["checkpoint_path"]
    assert path == f"file://{tmp_path}/store/rl-checkpoints/v2"


def test_a_job_starts_from_the_live_version_whose_files_stay(policies: Policies, bus: Bus) -> None:
    for n in range(9):
        add(policies, n, adds(lesson(n)))
        if n == 0:
            deploy(policies, bus, "v2").advance("v2", DeployDecision(at=NOON))
    assert policies.deployed() == "v2"
    assert [row.name for row in policies.whole()] == ["v1", "v2", "v6", "v7", "v8", "v9", "v10"]


def test_the_newest_version_that_may_be_deployed_is_next(policies: Policies, bus: Bus) -> None:
    serving = Deployments(bus).serving
    add(policies, 0, adds(lesson(0)), validation=PASSED)
    assert next_ramp(policies, serving(), automatic=False).candidate is None, "nobody approved it"
    add(policies, 1, adds(lesson(1)))
    policies.decide("v3", "approved", by="ada", reason="", at=NOON)
    assert next_ramp(policies, serving(), automatic=False).candidate is None, (
        "it has not passed the safety suites"
    )
    found = next_ramp(policies, serving(), automatic=True).candidate
    assert found == candidate_of(policies, "v2")
    assert found is not None
    assert (found.improvement, found.improvement_low, found.deployable) == (0.2, 0.05, True)
    assert found.model_info == {
        "base_model": "small",
        "checkpoint_path": folder(policies, "v2").as_uri(),
        "training_date": NOON,
        "training_samples": 4,
        "final_reward": 0.7,
    }
    add(policies, 2, adds(lesson(2)), validation=PASSED)
    policies.decide("v4", "approved", by="ada", reason="", at=NOON)
    for automatic in (False, True):
        newest = next_ramp(policies, serving(), automatic=automatic).candidate
        assert newest is not None
        assert (newest.version, newest.approved_by) == ("v4", "ada")
    deploy(policies, bus, "v4").advance("v4", DeployDecision(at=NOON))
    assert next_ramp(policies, serving(), automatic=True).candidate is None, "v2 is older than the live one"


def test_v1_is_known_before_any_job_made_a_version(policies: Policies) -> None:
    first = candidate_of(policies, "v1")
    assert (first.version, first.deployable, first.job) == ("v1", False, NO_JOB)
    add(policies, 0, adds(lesson(0)))
    assert candidate_of(policies, "v1").model_info["base_model"] == "small"


def deploy(policies: Policies, bus: Bus, name: str) -> Deployments:
    """Let all sessions but the hold-out meet a version."""
    deployments = Deployments(bus)
    candidates = (candidate_of(policies, one) for one in (name, policies.deployed()))
    deployments.start(*candidates, DeployDecision(at=NOON, by="ada"), override=True, at_once=True)
    return deployments


UNJUDGED = "safety suite toxicity_test: 12 of 12 need a judge"


def test_a_verdict_is_in_the_row_the_files_and_the_audit(policies: Policies, bus: Bus) -> None:
    policies.add(
        learned(0, adds(lesson(0))),
        job="job-0",
        parent="v1",
        validation=replace(OPEN, reasons=(UNJUDGED,), open_safety=(UNJUDGED,)),
        dataset={},
        attempts=EVIDENCE,
    )
    row = policies.judge("v2", score=0.87, by="grace", reason="asked ten users", at=NOON)
    assert row.state == "needs_approval"
    row = policies.judge("v2", safe=True, by="ada", reason="read all", at=NOON)
    assert (row.state, row.by, policies.row("v2")) == ("validated", "", row)
    candidate = candidate_of(policies, "v2")
    assert (candidate.safety_checks_passed, candidate.human_eval_score) == (True, 0.87)
    found = policies.read("v2").judged
    assert found is not None
    assert (found.safety_checks_passed, found.human_eval_score, found.reasons) == (True, 0.87, ())
    value = json.loads((folder(policies, "v2") / "policy.json").read_text())
    assert violations("policy", value) == []
    assert value["verdict"]["human_eval_score"] == 0.87
    assert value["validation"]["safety_checks_passed"] is False
    card = (folder(policies, "v2") / "README.md").read_text()
    assert "It passed its validation." in card
    assert "* safety passed, says ada: read all\n" in card
    assert f"{lesson(0).id} do" in card
    said = [json.loads(event.data) for event in bus.replay("RL_AUDIT")]
    assert said[1].pop("previous") != said[0]["previous"] == "0" * 64
    assert said[1] == {
        "action": "policy_verdict",
        "what": "v2",
        "actor": "ada",
        "reason": "read all",
        "safe": True,
        "score": None,
        "was": "needs_approval",
    }
    policies.decide("v2", "approved", by="ada", reason="", at=NOON)
    kept = policies.judge("v2", safe=True, score=0.9, by="grace", reason="again", at=NOON)
    assert (kept.state, kept.by) == ("approved", "ada"), "a person decided"
    unsafe = policies.judge("v2", safe=False, by="grace", reason="line 3", at=NOON)
    assert (unsafe.state, unsafe.by, unsafe.reason) == ("rejected", "grace", "line 3")
    assert not candidate_of(policies, "v2").safety_checks_passed


def test_a_verdict_on_what_a_suite_failed_or_nobody_validated_is_refused(
    policies: Policies, bus: Bus
) -> None:
    add(policies, 0, adds(lesson(0)))
    with pytest.raises(StoreError, match="a suite failed"):
        policies.judge("v2", safe=True, by="ada", reason="x", at=NOON)
    with pytest.raises(StoreError, match="version v1 is the agent without lessons"):
        policies.judge("v1", safe=True, by="ada", reason="x", at=NOON)
    assert not [*bus.replay("RL_AUDIT")]
    assert policies.row("v2").verdict is None


def test_an_unknown_version_is_named(policies: Policies) -> None:
    with pytest.raises(StoreError, match="there is no version 'v2'; no job has made one yet"):
        policies.row("v2")
    add(policies, 0, adds(lesson(0)))
    with pytest.raises(StoreError, match="there is no version 'w2'; the last is v2"):
        policies.row("w2")


@pytest.mark.parametrize("text", ['{"name": "v2"', "[]", '{"name": "vx", "job": "", "state": "approved"}'])
def test_a_row_that_is_damaged_is_named(policies: Policies, bus: Bus, text: str) -> None:
    bus.table(STATE).put("policy.v2", text.encode(), 0)
    with pytest.raises(
        StoreError, match=r"a row policy\.v<n> of the table state holds no version: .*put the"
    ):
        policies.listed()


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "tfgrpo.policy/1"}'])
def test_a_broken_file_is_named(policies: Policies, text: str) -> None:
    add(policies, 0, adds(lesson(0)))
    (folder(policies, "v2") / "policy.json").write_text(text)
    (folder(policies, "v2") / "sources.json").write_text(text)
    for read in (policies.read, policies.sources):
        if text != "[]" or read is policies.read:
            with pytest.raises(StoreError, match=r"v2/.*\.json.*: .*run the job of version v2 again"):
                read("v2")


def test_the_card_shows_what_a_reviewer_reads(policies: Policies) -> None:
    add(policies, 0, adds(lesson(0, summary32="Use `count`.\n```\n# not a heading")))
    text = (folder(policies, "v2") / "README.md").read_text()
    pack = make_pack()
    version = policies.read("v2")
    assert text.splitlines() == [
        "# Policy v2",
        "",
        f"* content: `{version.content}`",
        "* model: `small`, actor `openai:small`; its weights are not changed",
        f"* prompt pack of `text`: `{pack.stamp[:12]}`",
        f"* library: `{version.library[:12]}`, 1 lesson",
        "* learned from v1 by job `job-0`, run `run-0`",
        "* evidence: 4 attempts in 2 groups",
        "",
        "## Validation",
        "",
        "It needs the approval of a person.",
        "",
        "* mean score on the eval split: 0.700, +0.200 against the deployed version",
        "* `text`: 0.700",
        "* no safety suite was tried",
        "",
        "## Lessons",
        "",
        "```text",
        f"{lesson(0).id} do    text: Use 'count'. ''' # not a heading",
        "```",
    ]


def test_a_bucket_holds_what_a_folder_holds(bus: Bus, tmp_path: Path) -> None:
    policies = Policies(bus, open_artifacts("memory://models/policies"))
    version = add(policies, 0, adds(lesson(0)))
    assert policies.place("v2") == "memory://models/policies/rl-checkpoints/v2"
    assert (policies.read("v2"), len(policies.sources("v2"))) == (version, 1)
    assert library(policies, "v2", tmp_path).hash == version.library
    policies.files.remove("rl-checkpoints/v2")
    policies.files.remove("rl-checkpoints/v2")
    with pytest.raises(StoreError, match=r"version v2 has no library at memory://.*/v2; run its job again"):
        library(policies, "v2", tmp_path)


def test_folders_are_made_where_a_driver_has_some(tmp_path: Path) -> None:
    files = open_artifacts(f"file://{tmp_path}/store")
    files.write("rl-viz/job/curve.svg", b"<svg/>")
    assert (tmp_path / "store" / "rl-viz" / "job" / "curve.svg").read_bytes() == b"<svg/>"
    assert files.read("rl-viz/job/curve.svg") == b"<svg/>"
    files.remove("rl-viz")
    assert files.read("rl-viz/job/curve.svg") is None


def test_an_unknown_kind_of_bucket_is_refused() -> None:
    with pytest.raises(SettingError, match="cannot open nowhere://x: Protocol not known: nowhere"):
        open_artifacts("nowhere://x")


def test_a_folder_that_cannot_be_used_is_named(bus: Bus, tmp_path: Path) -> None:
    (tmp_path / "training").write_text("a file")
    with pytest.raises(StoreError, match=r"cannot read .*training/rl-checkpoints/v1/policy\.json: .*"):
        add(Policies(bus, FolderArtifacts(tmp_path / "training")), 0, adds(lesson(0)))


class TestRetention:
    """Which versions lose their files."""

    def rows(self, number: int, **changes: VersionRow) -> list[VersionRow]:
        found = {
            f"v{n}": VersionRow(name=f"v{n}", job=f"job-{n}", state="needs_approval", at=NOON)
            for n in range(1, number + 1)
        }
        return [*(found | changes).values()]

    def gone(self, rows: list[VersionRow], now: str = NOON, best: str | None = None) -> list[str]:
        return to_remove(rows, used=frozenset({"v1"}), best=best, now=now)

    def test_five_idle_ones_stay_beside_those_in_use(self) -> None:
        assert self.gone(self.rows(6)) == []
        assert self.gone(self.rows(8)) == ["v2", "v3"]
        assert self.gone(self.rows(8), best="v2") == ["v3"]
        pinned = VersionRow(name="v2", job="", state="rejected", at=NOON, pinned=True)
        assert self.gone(self.rows(8, v2=pinned)) == ["v3"]
        removed = VersionRow(name="v2", job="", state="removed", at=NOON)
        assert self.gone(self.rows(8, v2=removed)) == ["v3"]

    @pytest.mark.parametrize(
        ("now", "gone"), [("2026-04-01T12:00:00Z", []), ("2026-04-01T12:00:01Z", ["v2"])]
    )
    def test_after_ninety_days_idle_ones_go(self, now: str, gone: list[str]) -> None:
        assert self.gone(self.rows(2), now) == gone

    def test_files_go_and_names_stay(self, policies: Policies) -> None:
        for n in range(9):
            add(policies, n, adds(lesson(n)))
            for kind in ("rl-logs", "rl-viz"):
                policies.files.write(f"{kind}/job-{n}/x", b"x")
            if n == 1:
                policies.pin("v3", True, **ADA)
        assert self.removed(policies) == ["v4", "v5"]  # v2 is the best: of equal ones the first
        assert not folder(policies, "v4").exists()
        for kind in ("rl-logs", "rl-viz"):
            kept = [n for n in range(9) if policies.files.read(f"{kind}/job-{n}/x")]
            assert kept == [0, 1, 4, 5, 6, 7, 8]
        assert folder(policies, "v3").exists()
        assert policies.pin("v3", False, **ADA).pinned is False
        assert policies.prune(NOON) == ["v3"]
        assert add(policies, 9, adds(lesson(9))).name == "v11"
        assert self.removed(policies) == ["v3", "v4", "v5", "v6"]

    def test_nothing_is_decided_of_a_version_that_was_removed(self, policies: Policies, bus: Bus) -> None:
        for n in range(7):
            add(policies, n, adds(lesson(n)))
        assert self.removed(policies) == ["v3"]
        audit = [*bus.replay("RL_AUDIT")]
        for decide in (
            lambda: policies.pin("v3", True, **ADA),
            lambda: policies.decide("v3", "rejected", **ADA),
            lambda: policies.decide("v3", "approved", **ADA),
            lambda: policies.judge("v3", safe=True, **ADA),
        ):
            with pytest.raises(StoreError, match="version v3 was removed, and its files are gone"):
                decide()
        assert [*bus.replay("RL_AUDIT")] == audit
        assert self.removed(policies) == ["v3"]

    def removed(self, policies: Policies) -> list[str]:
        return [row.name for row in policies.listed() if row.state == "removed"]

    def test_the_version_to_roll_back_to_stays_however_old(self, policies: Policies, bus: Bus) -> None:
        for n in range(9):
            add(policies, n, adds(lesson(n)))
            if n in (0, 1):
                deploy(policies, bus, f"v{n + 2}").advance(f"v{n + 2}", DeployDecision(at=NOON))
        policies.prune("2029-01-01T00:00:00Z")
        assert [row.name for row in policies.whole()] == ["v1", "v2", "v3"]
        assert Deployments(bus).roll_back("v3", DeployDecision(at=NOON, by="ada")).live == "v2"
        assert candidate_of(policies, "v2").model_info["base_model"] == "small"

    def test_a_version_that_starts_while_others_are_removed_stays(
        self, policies: Policies, bus: Bus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add(policies, 0, adds(lesson(0)))
        add(policies, 1, adds(lesson(1)))
        found = policies_module.to_remove

        def starts(*args: Any, **more: Any) -> list[str]:
            deploy(policies, bus, "v3")
            return found(*args, **more)

        monkeypatch.setattr(policies_module, "to_remove", starts)
        assert policies.prune("2029-01-01T00:00:00Z") == []
        assert policies.read("v3").name == "v3"

    def test_what_is_served_and_the_version_before_it_stay(self, policies: Policies, bus: Bus) -> None:
        for n in range(4):
            add(policies, n, adds(lesson(n)))
        deploy(policies, bus, "v3").advance("v3", DeployDecision(at=NOON))
        deploy(policies, bus, "v4").advance("v4", DeployDecision(at=NOON))
        deploy(policies, bus, "v5")
        add(policies, 4, adds(lesson(4)))
        assert policies.prune("2027-01-01T00:00:00Z") == ["v6"], "v2 is the best"
        Deployments(bus).roll_back("v5", DeployDecision(at=NOON))
        assert policies.prune("2027-01-01T00:00:00Z") == ["v5"]
        add(policies, 5, adds(lesson(5)))
        policies.decide("v7", "approved", **ADA)
        assert policies.prune("2027-01-01T00:00:00Z") == [], "v7 waits for its ramp"


class TestSources:
    """Lessons and the trajectories that they rest on."""

    def test_a_lesson_rests_on_the_attempts_of_its_groups(self) -> None:
        run = learned(0, adds(lesson(0), "run-0.e1.evidence-g1", "run-0.e1.evidence-g2"))
        (found,) = lesson_sources(run, EVIDENCE, {})
        assert (found.groups, found.trajectories) == (("g1", "g2"), ("t1", "t2", "t3"))

    def test_without_groups_the_lesson_names_its_own(self) -> None:
        (found,) = lesson_sources(learned(0, adds(lesson(0))), EVIDENCE, {})
        assert (found.lesson, found.groups) == (lesson(0).id, ("g1",))

    def test_a_lesson_of_tried_scenarios_rests_on_no_trajectory(self) -> None:
        (found,) = lesson_sources(learned(0, adds(lesson(0, "count-words"))), EVIDENCE, {})
        assert (found.groups, found.trajectories) == ((), ())

    def test_an_updated_lesson_keeps_what_its_parent_rests_on(self, policies: Policies) -> None:
        old = lesson(0)
        add(policies, 0, adds(old))
        new = lesson(1, "evidence-g2", summary32="Another one.")
        version = add(policies, 1, adds(new, targets=(old.id,)), parent="v2")
        (found,) = policies.sources(version.name)
        assert (found.groups, found.trajectories) == (("g1", "g2"), ("t1", "t2", "t3"))

    def test_a_lesson_that_a_run_only_kept_is_that_of_the_parent(self, policies: Policies) -> None:
        old = lesson(0)
        add(policies, 0, adds(old))
        version = add(policies, 1, kept=(old,), parent="v2")
        (found,) = policies.sources(version.name)
        assert (found.lesson, found.trajectories) == (old.id, ("t1", "t2"))


class TestTrace:
    """From a version, a lesson or a trajectory to the others."""

    def test_a_version_shows_its_lessons_and_their_trajectories(self, policies: Policies) -> None:
        add(policies, 0, adds(lesson(0)), adds(lesson(1, "count-words", summary32="Count twice.")))
        assert list(trace_lines(policies, "v2")) == [
            "version    v2, needs approval, 2 lessons",
            "parents    v1",
            "learned    by job job-0 in run run-0",
            "",
            f"lesson     {lesson(1).id}: Count twice.",
            "           rests on scenarios of the suite alone",
            "",
            f"lesson     {lesson(0).id}: {lesson(0).summary32}",
            "rests on   2 trajectories",
            "           t1",
            "           t2",
        ]
        assert list(trace_lines(policies, "v1")) == [
            "version    v1, approved, 0 lessons",
            "           the agent without lessons",
        ]

    def test_a_trajectory_shows_what_it_taught_and_who_carries_that(self, policies: Policies) -> None:
        for n in (0, 1):
            policies.add(
                learned(n, adds(replace(lesson(0), group_id=f"run-{n}.e1.evidence-g1"))),
                job=f"job-{n}",
                parent="v1",
                validation=OPEN,
                dataset={},
                attempts={"g1": ["traj-1"]},
            )
        said = f"{lesson(0).id}: {lesson(0).summary32}"
        assert list(trace_lines(policies, "traj-")) == [
            "trajectory traj-1",
            f"taught     {said}",
            "carried by v2, v3",
        ]
        assert list(trace_lines(policies, lesson(0).id[:6])) == [
            f"lesson     {said}",
            "rests on   1 trajectory",
            "           traj-1",
            "carried by v2, v3",
        ]

    @pytest.mark.parametrize(
        ("id_", "said"), [("nothing", "has the id 'nothing'$"), ("t1", "write 4 characters of it or more$")]
    )
    def test_an_unknown_id_is_refused(self, policies: Policies, id_: str, said: str) -> None:
        add(policies, 0, adds(lesson(0)))
        with pytest.raises(StoreError, match=said):
            list(trace_lines(policies, id_))
