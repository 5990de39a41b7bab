"""The commands with which a person decides about versions: ``tfgrpo loop approve`` and its like."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.learned_runs import learned, lesson
from support.loop_events import payloads
from support.tools import tfgrpo

from pytest_tfgrpo.cli import main
from pytest_tfgrpo.cli.loop.loop_roles import deployment_role
from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE

ADA = ("--by", "ada", "--reason", "read it")
BUS = "embedded:loop-bus.db"


@pytest.fixture(autouse=True)
def _loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in the folder of a loop with v2 and v3, which passed their validation, and v4, which did not."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    with closing(open_bus(BUS)) as bus:
        for n in range(2):
            add(bus, n, outcome="validated")
        add(bus, 2, outcome="rejected", reasons=("the gate failed",), benchmark_passed=False)


def add(bus: Bus, n: int, **found: Any) -> None:
    """Add a version as a job does."""
    passed = {"outcome": "needs_approval", "benchmark_passed": True, "safety_checks_passed": True}
    Policies(bus, FolderArtifacts(Path("loop-jobs").absolute())).add(
        learned(n, Operation(kind="add", experience=lesson(n), groups=(), targets=())),
        job=f"job-{n}",
        parent="v1",
        validation=Validation(
            **{**passed, "performance_regression": False, "improvement_over_baseline": 0.1, **found}
        ),
        dataset={},
        attempts={},
    )


def decide(action: str, version: str, *more: str, code: int = 0) -> list[str]:
    return tfgrpo("loop", action, version, *ADA, *more, code=code).splitlines()


def state(version: str) -> str:
    lines = tfgrpo("loop", "versions", "list").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(version))


def test_an_approved_version_ramps_and_is_advanced_held_and_rolled_back() -> None:
    first = decide("approve", "v2")
    assert first[0].split() == ["live", "v1"]
    assert " ".join(first[1].split()).startswith("canary v2 meets 10 % of new sessions, step 1 of 4")
    assert state("v2") == "canary"
    assert "meets 25 % of new sessions, step 2 of 4" in " ".join(decide("advance", "v2"))
    held = decide("hold", "v2")
    assert held[1].split()[:4] == ["held", "v2", "meets", "25"]
    assert held[-1].split() == ["held", "by", "ada:", "read", "it"]
    assert decide("advance", "v2")[1].split()[:4] == ["canary", "v2", "meets", "25"]
    (back,) = decide("rollback", "v2")
    assert back.split() == ["live", "v1"]
    assert decide("rollback", "v2") == [back]
    assert (state("v1"), state("v2")) == ("live", "rolled")
    assert "meets 10 %" in decide("approve", "v2")[1], "a person lets it ramp again"
    decide("rollback", "v2")
    decide("reject", "v2")
    assert state("v2") == "rejected"


def test_a_version_that_did_not_pass_takes_an_override_and_all_sessions_only_with_it() -> None:
    (said,) = decide("approve", "v4", code=1)
    assert "version v4 may not be deployed: the gate failed; --emergency-override does it anyhow" in said
    assert state("v4") == "rejected"
    assert "--at-once skips the ramp" in decide("approve", "v2", "--at-once", code=1)[0]
    assert "meets 95 %" in decide("approve", "v4", "--emergency-override", "--at-once")[1]
    with closing(open_bus(BUS)) as bus:
        audit = payloads(bus, "RL_AUDIT")
        (event,) = payloads(bus, "RL_DEPLOYMENTS")
    assert [(one["action"], one["actor"], one["reason"]) for one in audit] == [
        ("policy_override", "ada", "read it"),
        ("deployment_override", "ada", "read it"),
    ]
    assert event["deployment_config"]["rollout_strategy"] == "immediate"
    assert event["metadata"]["approval_status"] == "manual_approved"


def test_a_secret_in_a_reason_is_not_kept() -> None:
    key = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
    why = ("--by", "ada", "--reason", f"it works with {key}")
    tfgrpo("loop", "approve", "v2", *why)
    tfgrpo("loop", "versions", "verdict", "v2", "--safety", "failed", *why)
    with closing(open_bus(BUS)) as bus:
        audit = payloads(bus, "RL_AUDIT")
        kept = json.dumps(
            [
                *audit,
                *payloads(bus, "RL_DEPLOYMENTS"),
                to_wire(Policies(bus, FolderArtifacts(Path("loop-jobs").absolute())).read("v2")),
            ]
        )
    assert audit[0]["reason"] == "it works with [redacted:api_key]"
    assert key not in kept


def test_a_version_that_is_approved_during_a_ramp_waits_for_its_end() -> None:
    decide("approve", "v2")
    assert decide("approve", "v3") == ["v3 approved; it waits until the ramp of v2 ends"]
    said = "v4 approved; it waits until the ramp of v2 ends; approve it again then"
    assert decide("approve", "v4", "--emergency-override") == [said]
    with closing(open_bus(BUS)) as bus:
        audit = [(one["action"], one["what"]) for one in payloads(bus, "RL_AUDIT")]
    assert audit[-2:] == [("policy_approved", "v3"), ("policy_override", "v4")]
    assert "version v2 is served already" in decide("approve", "v2", code=1)[0]
    assert (state("v3"), state("v4")) == ("approved", "approved")


def test_a_version_whose_safety_nobody_judged_wants_a_verdict() -> None:
    with closing(open_bus(BUS)) as bus:
        add(
            bus, 3, safety_checks_passed=False, reasons=("12 need a judge",), open_safety=("12 need a judge",)
        )
        add(bus, 4, benchmark_passed=False, safety_checks_passed=False, open_safety=("x",))
    (said,) = decide("approve", "v5", code=1)
    verdict = "tfgrpo loop versions verdict v5 --safety passed --by NAME --reason TEXT"
    assert f"12 need a judge; say whether what is open is safe: {verdict}; --emergency-override" in said
    assert "verdict" not in decide("approve", "v6", code=1)[0], "it would not do"


def test_a_verdict_of_a_person_that_a_version_is_unsafe_rolls_it_back_at_once() -> None:
    def judge(version: str) -> list[str]:
        return tfgrpo("loop", "versions", "verdict", version, "--safety", "failed", *ADA).splitlines()

    decide("approve", "v2")
    first, _, then, why = judge("v2")
    assert (first, then) == ("v2 rolled back; live is v1", "v2 rejected"), "and no longer approved"
    assert "a person found it unsafe" in why
    assert (state("v2"), "a person found it unsafe" in judge("v3")[-1]) == ("rejected", True)
    assert "served" not in tfgrpo("loop", "status")
    with closing(open_bus(BUS)) as bus:
        last = payloads(bus, "RL_DEPLOYMENTS")[-1]["metadata"]
    assert (last["state"], last["deployed_by"]) == ("rolled_back", "ada")
    assert last["reason"] == "safety: a person found it unsafe: read it"
    decide("approve", "v4", "--emergency-override", "--at-once")
    decide("advance", "v4")
    Path("loop-jobs/rl-checkpoints/v4/policy.json").write_text("{")
    tfgrpo("loop", "versions", "verdict", "v4", "--safety", "failed", *ADA, code=1)
    with closing(open_bus(BUS)) as bus:
        assert Deployments(bus).serving().live == "v1", "whatever its files are"


def test_an_approved_version_that_cannot_be_read_is_skipped_for_an_older_one() -> None:
    decide("approve", "v4", "--emergency-override")
    for version in ("v2", "v3"):
        decide("approve", version)
    decide("rollback", "v4")
    Path("loop-jobs/rl-checkpoints/v3/policy.json").write_text("{")
    Path("loop-jobs/rl-checkpoints/v1/policy.json").write_text("{")
    with closing(open_bus(BUS)) as bus, closing(LoopView(Path("loop-view.db"))) as view:
        role = deployment_role(bus, view, load_loop_config("loop.toml", {}))
        assert role.step() == 1
        role.close()
    said = " ".join(tfgrpo("loop", "status").split())
    assert "v2 meets 10 % of new sessions" in said
    assert "skipped v3 cannot begin its ramp: cannot read" in said
    assert "run the job of version v3 again" in said
    with closing(open_bus(BUS)) as bus, closing(LoopView(Path("loop-view.db"))) as view:
        role = deployment_role(bus, view, load_loop_config("loop.toml", {}))
        role.step()
        role.close()
    said = tfgrpo("loop", "status")
    assert "30 more sessions" in said
    assert "v3 cannot begin its ramp" in said, "also during the ramp of v2"
    assert (state("v3"), tfgrpo("loop", "versions", "list").count("cannot be read")) == ("approved,", 2)


def test_an_override_that_waited_for_the_end_of_a_ramp_is_no_approval_to_start() -> None:
    decide("approve", "v2")
    decide("approve", "v4", "--emergency-override")
    decide("rollback", "v2")
    with closing(open_bus(BUS)) as bus, closing(LoopView(Path("loop-view.db"))) as view:
        role = deployment_role(bus, view, load_loop_config("loop.toml", {}))
        assert role.step() == 0
        role.close()
    said = " ".join(tfgrpo("loop", "status").split())
    assert "v4 cannot begin its ramp: its validation is against it: approve it again with --emergency" in said


@pytest.mark.parametrize("row", ["policy.v3", "policy.v2"])
def test_a_damaged_row_of_a_version_keeps_nobody_from_rolling_back(row: str) -> None:
    decide("approve", "v2")
    damage(row)
    assert decide("rollback", "v2")[0].split() == ["live", "v1"]


def test_a_damaged_row_of_what_is_served_is_named_with_what_to_do() -> None:
    decide("approve", "v2")
    damage("serving")
    (said,) = decide("rollback", "v2", code=1)
    assert "the row 'serving' of the table state does not hold what is served" in said
    assert "put the bus back from a copy of its data; RL_DEPLOYMENTS says what was served" in said


def damage(row: str) -> None:
    with closing(open_bus(BUS)) as bus:
        table = bus.table(STATE)
        table.put(row, b"{", table.get(row)[1])


def test_versions_are_rejected_and_pinned() -> None:
    assert decide("reject", "v3") == ["v3 rejected by ada"]
    assert "version v3 is rejected already, by ada" in decide("reject", "v3", code=1)[0]
    assert decide("pin", "v3") == ["v3 pinned"]
    assert decide("pin", "v3", "--off") == ["v3 no longer pinned"]
    assert "there is no version 'v9'; the last is v4" in decide("pin", "v9", code=1)[0]
    decide("approve", "v2")
    assert "v2 is served; roll it back first: tfgrpo loop rollback v2" in decide("reject", "v2", code=1)[0]


@pytest.mark.parametrize("action", ["approve", "hold"])
@pytest.mark.parametrize(
    ("by", "reason"), [(" ", "x"), ("ada", ""), ("a" * 257, "x"), ("ada\x1b[2J", "x"), ("ada", "\udcff")]
)
def test_who_decides_and_why_are_said_in_words_that_an_event_can_hold(
    action: str, by: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["loop", action, "v2", "--by", by, "--reason", reason])
    assert "printable characters" in capsys.readouterr().err


@pytest.mark.parametrize(("approval", "ramps"), [("automatic", "v3"), ("manual", "")])
def test_a_service_starts_the_newest_version_that_may_be_deployed(approval: str, ramps: str) -> None:
    config = load_loop_config("loop.toml", {"TFGRPO_LOOP_DEPLOYMENT_APPROVAL": approval})
    with closing(open_bus(BUS)) as bus, closing(LoopView(config.view_path)) as view:
        role = deployment_role(bus, view, config)
        assert role.step() == bool(ramps)
        role.close()
        serving = Deployments(bus).serving()
        found = payloads(bus, "RL_DEPLOYMENTS")
    assert (serving.ramp.version if serving.ramp else "") == ramps
    assert [one["metadata"]["approval_status"] for one in found] == ["automated"] * bool(ramps)


def test_the_status_says_what_users_meet_and_what_a_ramp_waits_for() -> None:
    assert json.loads(tfgrpo("loop", "status", "--json"))["serving"] == {
        "live": "v1",
        "ramp": None,
        "waits_for": "",
        "skipped": {},
    }
    assert "live" not in tfgrpo("loop", "status")
    decide("approve", "v2")
    with closing(open_bus(BUS)) as bus, closing(LoopView(Path("loop-view.db"))) as view:
        role = deployment_role(bus, view, load_loop_config("loop.toml", {}))
        assert role.step() == 0
        role.close()
    said = tfgrpo("loop", "status")
    assert "v2 meets 10 % of new sessions" in said
    assert "30 more sessions of the canary" in said.replace("\n", " ").replace("  ", " ").replace("  ", " ")
    assert json.loads(tfgrpo("loop", "status", "--json"))["serving"]["ramp"]["version"] == "v2"
