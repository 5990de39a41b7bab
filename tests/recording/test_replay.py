"""Replay: what is asked again is answered as it was; what was never asked is refused, saying what differs."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_frame, make_scenario
from support.completers import make_calls
from support.recordings import PROMPT, STAMP, make_call, make_entry, make_run, write_recording

from pytest_tfgrpo.core.errors import AgentFailure, ModelError, ProviderError, RecordingError
from pytest_tfgrpo.core.records import Failure, Trajectory
from pytest_tfgrpo.core.scenarios import Check, Prompt, Scenario
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.llm.fingerprint import fingerprint, text_of
from pytest_tfgrpo.llm.protocol import Message, Request
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.recording.replay import Replay, open_replay
from pytest_tfgrpo.recording.writing import record
from pytest_tfgrpo.sandbox.workspace import Workspace

pytestmark = pytest.mark.asyncio
ASKED = Prompt(system="Solve it.", user="How many?")
REQUEST = Request(messages=(Message(role="user", content="Compare."),), temperature=0.0, seed=1)


def replay_of(folder: Path, *entries: Any) -> Replay:
    write_recording(folder / "r.jsonl", entries)
    replay = open_replay("r.jsonl", folder)
    replay.begin([make_scenario(stamp=STAMP), make_scenario("other", stamp=STAMP)], {"seed": 0})
    return replay


def entry(**changes: Any) -> Any:
    return make_entry(**{"prompt": ASKED.stamp} | changes)


def call(folder: Path, **changes: Any) -> ActorCall:
    fields: dict[str, Any] = {
        "task": make_scenario(stamp=STAMP).task(),
        "prompt": ASKED,
        "temperature": 0.7,
    }
    fields |= {"seed": 5, "workspace": Workspace(folder / "work"), "timeout_s": 1.0, "answer_max_bytes": 100}
    return ActorCall(**fields | changes)


async def test_an_answer_comes_with_its_frames_and_latency(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, entry(frames=(make_frame(),), latency_ms=12.5))
    wanted = Trajectory(answer="3", frames=(make_frame(),), latency_ms=12.5)
    assert await replay.actor(call(tmp_path)) == wanted
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(("status", "kind"), [("failed", AgentFailure), ("error", ProviderError)])
async def test_a_fault_is_raised_as_it_was(tmp_path: Path, status: Any, kind: Any) -> None:
    failure = Failure(code="some_code", message="it went wrong")
    replay = replay_of(
        tmp_path, entry(status=status, failure=failure, answer="half", frames=(make_frame(),), latency_ms=7.0)
    )
    with pytest.raises(kind, match=r"^it went wrong$") as caught:
        await replay.actor(call(tmp_path))
    fault = caught.value
    assert (fault.code, fault.answer, fault.frames, fault.latency_ms) == (
        "some_code",
        "half",
        (make_frame(),),
        7.0,
    )


async def test_the_same_question_is_answered_take_by_take_and_then_with_the_last(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, entry(answer="one"), entry(answer="two", take=1))
    answers = [(await replay.actor(call(tmp_path))).answer for _ in range(4)]
    assert answers == ["one", "two", "two", "two"]


@pytest.mark.parametrize(
    ("recorded", "why"),
    [
        ({"scenario": "other"}, "it was never recorded"),
        ({"actor": "f" * 16}, "it was never recorded"),
        ({"stamp": "9" * 64}, "the scenario changed: .* is of a version that does not say which"),
        ({"stamp": "9" * 64, "seen": "8" * 64}, "what the agent meets of the scenario changed"),
        ({"prompt": PROMPT}, "the prompt changed: its prompt pack, or the lessons in it"),
        ({"temperature": 0.3}, "temperature 0.7, recorded 0.3"),
        ({"seed": 6}, r"seed 5 is not recorded \(recorded: 6\)"),
    ],
)
async def test_a_miss_is_the_providers_error_and_says_what_differs(
    tmp_path: Path, recorded: dict[str, Any], why: str
) -> None:
    replay = replay_of(tmp_path, entry(**recorded))
    with pytest.raises(
        ProviderError, match=f"'count-words' is not in r.jsonl in its current form: {why}"
    ) as caught:
        await replay.actor(call(tmp_path))
    assert caught.value.code == "replay_miss"
    (warning,) = replay.warnings
    assert "r.jsonl lacks 1 answer" in warning
    assert warning.endswith("record them with --tfgrpo-actor='python:agent:solve' --tfgrpo-record=r.jsonl")


SEEN = stamp(make_scenario().seen)
OTHER = replace(make_scenario(stamp="9" * 64), checks=(Check(kind="exact", params={"value": "4"}),))
LOOKING = replace(OTHER, checks=(Check(kind="file", params={"path": "a"}),))


def replay_for(folder: Path, scenario: Scenario, *entries: Any) -> Replay:
    """Return the replay of a run whose only scenario is `scenario`."""
    write_recording(folder / "r.jsonl", entries)
    replay = open_replay("r.jsonl", folder)
    replay.begin(replay.as_recorded([scenario]), {"seed": 0})
    return replay


async def test_answers_to_what_the_agent_met_serve_a_scenario_with_other_checks(tmp_path: Path) -> None:
    replay = replay_for(tmp_path, OTHER, entry(seen=SEEN), entry(seed=6, seen=SEEN))
    (found,) = replay.as_recorded([OTHER])
    assert (found.seed_stamp, found.stamp) == (STAMP, OTHER.stamp)
    assert (await replay.actor(call(tmp_path))).answer == "3"
    assert replay.notes == ["1 scenario's checks changed since the recording; scored again: count-words"]
    assert replay.warnings == []


async def test_a_scenario_as_recorded_is_no_changed_one_whatever_else_is_on_file(tmp_path: Path) -> None:
    others = [entry(seed=seed, seen=SEEN, stamp="7" * 64) for seed in (6, 7)]
    now = make_scenario(stamp=STAMP)
    replay = replay_for(tmp_path, now, *others, entry(seen=SEEN))
    assert replay.as_recorded([now]) == [now]
    assert replay.notes == []
    assert (await replay.actor(call(tmp_path))).answer == "3"


async def test_another_task_is_no_scenario_with_other_checks(tmp_path: Path) -> None:
    replay = replay_for(tmp_path, replace(OTHER, prompt="Which?"), entry(seen=SEEN))
    with pytest.raises(ProviderError, match="what the agent meets of the scenario changed"):
        await replay.actor(call(tmp_path))
    assert replay.notes == []


async def test_new_checks_of_the_answer_need_no_files_however_slow_they_are(tmp_path: Path) -> None:
    for kind, params in {
        "json_schema": {"schema": {}},
        "regex": {"pattern": "3"},
        "math": {"value": "3"},
    }.items():
        now = replace(OTHER, checks=(Check(kind=kind, params=params),))
        assert (await replay_for(tmp_path, now, entry(seen=SEEN)).actor(call(tmp_path))).answer == "3"


@pytest.mark.parametrize(("fields", "lacks"), [({}, True), ({"files_kept": True}, False)])
async def test_new_checks_that_look_at_files_need_recorded_ones(
    tmp_path: Path, fields: dict[str, Any], lacks: bool
) -> None:
    replay = replay_for(tmp_path, LOOKING, entry(seen=SEEN, **fields))
    if not lacks:
        assert (await replay.actor(call(tmp_path))).answer == "3"
        return
    with pytest.raises(ProviderError, match="without files: its checks look at the workspace now") as caught:
        await replay.actor(call(tmp_path))
    assert caught.value.code == "replay_miss"
    assert "lacks 1 answer" in replay.warnings[0]


async def test_files_that_no_check_looks_at_any_more_may_be_too_many(tmp_path: Path) -> None:
    recorded = entry(seen=SEEN, files=None, files_kept=True)
    assert (await replay_for(tmp_path, OTHER, recorded).actor(call(tmp_path))).answer == "3"
    with pytest.raises(ProviderError, match="left more files than a recording keeps"):
        await replay_for(tmp_path, LOOKING, recorded).actor(call(tmp_path))


async def test_many_recorded_seeds_are_not_all_shown(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, *(entry(seed=seed) for seed in range(10, 20)))
    with pytest.raises(ProviderError, match=r"recorded: \d+, \d+, \d+ and 7 more\)"):
        await replay.actor(call(tmp_path))


async def test_files_are_made_again_in_their_folder_only(tmp_path: Path) -> None:
    for name in ("../out.txt", "/etc/x", "a/../../b", ""):
        raw = {"name": name, "text": "x"} if name else {"name": "..", "text": "x"}
        replay = replay_of(tmp_path, entry(files=(raw,)))
        with pytest.raises(ProviderError, match="cannot restore the file"):
            await replay.actor(call(tmp_path))
    assert not (tmp_path / "out.txt").exists()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A recording with calls of a model: one answered, one refused."""

    class Asked:
        name, identity, paid = "openai:m", {"url": "http://127.0.0.1"}, True

    asked: Any = Asked()
    refused = Request(messages=REQUEST.messages, temperature=0.5, seed=1)
    calls = [
        make_call(fingerprint=fingerprint(asked, REQUEST), prompt=text_of(REQUEST), cost_usd=0.5),
        make_call(
            key="z",
            fingerprint=fingerprint(asked, refused),
            prompt=text_of(refused),
            error="server: 503: gone",
            answer="",
            usage=None,
            finish="",
        ),
    ]
    record(tmp_path / "r.jsonl", make_run([make_entry()], calls))
    return tmp_path


async def test_a_model_answers_as_it_did(models: Path) -> None:
    completer = open_replay("r.jsonl", models).completer("openai:m")
    assert (completer.name, completer.paid) == ("openai:m", False)
    answer = await completer.complete(REQUEST)
    assert (answer.text, answer.cost_usd, answer.latency_ms, answer.finish) == ("Count.", 0.5, 2.0, "stop")
    assert answer.usage is not None


async def test_a_resumed_replay_goes_on_behind_answered_calls_only(models: Path) -> None:
    replay, failed = open_replay("r.jsonl", models), make_call(fingerprint="f", error="server: 503: gone")
    replay.resume([], [failed])
    assert not replay._takes
    replay.resume([], [make_call(fingerprint="f")])
    assert replay._takes.total() == 1


async def test_calls_of_a_replay_are_journaled_as_those_of_the_run(models: Path) -> None:
    written: list[Any] = []
    completer = open_replay("r.jsonl", models).completer("openai:m")
    refused = Request(messages=REQUEST.messages, temperature=0.5, seed=1)
    calls = make_calls(written)
    await calls.complete(completer, REQUEST, key="a", purpose="learn", epoch=1)
    with pytest.raises(ModelError, match=r"^503: gone$") as caught:
        await calls.complete(completer, refused, key="b", purpose="learn", epoch=1)
    assert caught.value.code == "server"
    assert [made.error for made in written] == [None, "server: 503: gone"]
    assert (written[0].cost_usd, written[0].latency_ms) == (0.5, 2.0)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (
            Request(messages=REQUEST.messages, temperature=0.0, seed=2),
            "the same text is recorded with another seed",
        ),
        (
            Request(messages=(Message(role="user", content="?"),), temperature=0.0),
            "what the model receives changed",
        ),
    ],
)
async def test_a_call_that_is_lacking_says_what_differs(models: Path, request_: Request, why: str) -> None:
    replay = open_replay("r.jsonl", models)
    with pytest.raises(RecordingError, match=f"a call of 'openai:m' is not in r.jsonl: {why}"):
        await replay.completer("openai:m").complete(request_)
    assert f"model calls: 1, {why}" in replay.warnings[0]


async def test_a_model_that_was_not_recorded_is_refused(models: Path) -> None:
    with pytest.raises(
        RecordingError, match="has no language model 'openai:n'; it has openai:m; did you mean"
    ):
        open_replay("r.jsonl", models).completer("openai:n")


async def test_the_default_endpoint_may_be_named(models: Path) -> None:
    assert open_replay("r.jsonl", models).completer("openai:m@default").name == "openai:m"


async def test_of_one_name_with_two_identities_the_latest_answers(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for version in (1, 2, 1):
        actor = {"name": "openai:m", "identity": {"version": version}}
        record(path, make_run([make_entry(seed=version)], actor=actor))
    assert open_replay("r.jsonl", tmp_path).actor.identity == {"version": 2}
    record(path, make_run([make_entry(seed=9)], actor={"name": "openai:m", "identity": {"version": 1}}))
    replay = open_replay("r.jsonl", tmp_path)
    assert replay.actor.identity == {"version": 1}
    assert open_replay("r.jsonl#openai:m", tmp_path).actor.identity == {"version": 1}
    stamp = replay.recording.header.actors[0].stamp if replay.recording.header else ""
    assert open_replay(f"r.jsonl#{stamp[:8]}", tmp_path).actor.identity == {"version": 2}


async def test_answers_that_other_settings_shaped_are_refused(models: Path) -> None:
    with pytest.raises(
        RecordingError, match=r"max_tokens was 10 when .* and is 20; set it back, or record again"
    ):
        open_replay("r.jsonl", models).begin([], {"max_tokens": 20})


async def test_names_from_a_file_are_printed_without_terminal_codes(tmp_path: Path) -> None:
    for name in ("one\x1b]0;title\x07", "two"):
        record(tmp_path / "r.jsonl", make_run([make_entry()], actor={"name": name, "identity": {}}))
    with pytest.raises(RecordingError) as caught:
        open_replay("r.jsonl", tmp_path)
    assert str(caught.value).isprintable()


async def test_a_replay_tells_what_was_told_beside_the_answer(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, entry(extra={"steps": 3}, decoy="answer"))
    found = await replay.actor(call(tmp_path))
    assert (found.extra, found.decoy) == ({"steps": 3}, "answer")


async def test_an_actor_is_chosen_by_its_name_or_by_six_digits_of_its_stamp(tmp_path: Path) -> None:
    for name in ("solver", "other"):
        record(tmp_path / "r.jsonl", make_run([make_entry()], actor={"name": name, "identity": {}}))
    other, solver = (open_replay("r.jsonl#" + name, tmp_path)._row for name in ("other", "solver"))
    assert open_replay(f"r.jsonl#{other.stamp[:6]}", tmp_path).actor.name == "other"
    assert open_replay(f"r.jsonl#{solver.stamp[:6]}", tmp_path).actor.name == "solver"
    with pytest.raises(RecordingError, match="it has other, solver"):
        open_replay(f"r.jsonl#{solver.stamp[:5]}", tmp_path)
    with pytest.raises(RecordingError, match="no actor 'solvr'; it has other, solver; did you mean 'solver'"):
        open_replay("r.jsonl#solvr", tmp_path)
    with pytest.raises(RecordingError, match="replay needs a recording: replay:<file>; record it with"):
        open_replay("", tmp_path)


async def test_the_seeds_are_those_that_most_answers_have_or_else_of_the_first_stamp(tmp_path: Path) -> None:
    one, two, three = "1" * 64, "2" * 64, "3" * 64
    several = [entry(seed=n, seen=SEEN, stamp=s) for n, s in enumerate((one, two, two, three, three))]
    write_recording(tmp_path / "r.jsonl", several)
    assert open_replay("r.jsonl", tmp_path).as_recorded([OTHER])[0].seed_stamp == two
    write_recording(tmp_path / "r.jsonl", several[:3])
    assert open_replay("r.jsonl", tmp_path).as_recorded([OTHER])[0].seed_stamp == two
    write_recording(tmp_path / "r.jsonl", [])
    assert open_replay("r.jsonl", tmp_path).as_recorded([OTHER]) == [OTHER]


async def test_a_test_function_may_look_at_files_and_so_may_a_scenario_that_is_not_known(
    tmp_path: Path,
) -> None:
    checked = replace(OTHER, checker="tests/test_it.py::test_it")
    replay = replay_for(tmp_path, checked, entry(seen=SEEN))
    with pytest.raises(ProviderError, match="its checks look at the workspace now"):
        await replay.actor(call(tmp_path))
    assert [replay.looks_at_files(id_) for id_ in (checked.id, "unknown")] == [True, True]
    assert replay_for(tmp_path, OTHER, entry()).looks_at_files(OTHER.id) is False


async def test_a_failed_attempt_needs_no_files_and_unchanged_checks_none_either(tmp_path: Path) -> None:
    failed = entry(seen=SEEN, status="failed", failure=Failure(code="timeout", message="late"))
    with pytest.raises(AgentFailure, match="late"):
        await replay_for(tmp_path, LOOKING, failed).actor(call(tmp_path))
    same = entry(seen=SEEN, stamp=LOOKING.stamp)
    assert (await replay_for(tmp_path, LOOKING, same).actor(call(tmp_path))).answer == "3"


async def test_several_scenarios_with_new_checks_are_counted(tmp_path: Path) -> None:
    write_recording(tmp_path / "r.jsonl", [entry(scenario=id_, seen=SEEN) for id_ in ("a", "b")])
    replay = open_replay("r.jsonl", tmp_path)
    replay.begin(replay.as_recorded([replace(OTHER, id=id_) for id_ in ("a", "b")]), {})
    assert replay.notes == ["2 scenarios' checks changed since the recording; scored again: a, b"]


async def test_an_attempt_that_was_missing_runs_again_and_others_are_behind(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, entry(answer="one"), entry(answer="two", take=1))
    ((rollout,),) = (g.rollouts for g in make_run([entry()]).phases[0].groups)
    missing = replace(rollout, status="error", failure=Failure(code="replay_miss", message="m"))
    replay.resume([missing], [])
    assert not replay._takes
    broken = replace(rollout, status="error", failure=Failure(code="network", message="m"))
    replay.resume([broken], [])
    assert (await replay.actor(call(tmp_path))).answer == "two"


@pytest.mark.parametrize(
    ("recorded", "now", "advice"),
    [
        (2, 4, "; settings differ: eval_rollouts was 2, is 4; set eval_rollouts = 2, or record the rest"),
        (4, 2, "; settings differ: eval_rollouts was 4, is 2; record them"),
        (2, 2, "; record them"),
    ],
)
async def test_more_rollouts_than_were_recorded_are_explained(
    recorded: int, now: int, advice: str, tmp_path: Path
) -> None:
    run = replace(make_run([entry()]), settings={"eval_rollouts": recorded})
    record(tmp_path / "r.jsonl", run)
    replay = open_replay("r.jsonl", tmp_path)
    replay.begin([make_scenario(stamp=STAMP)], {"eval_rollouts": now})
    for seed in (7, 8):
        with pytest.raises(ProviderError):
            await replay.actor(call(tmp_path, seed=seed))
    with pytest.raises(ProviderError):
        await replay.actor(call(tmp_path, prompt=Prompt(system="", user="?")))
    (warning,) = replay.warnings
    assert "r.jsonl lacks 3 answers that this run needed (rollouts: " in warning
    assert warning.split("(")[1].index("prompt changed") < warning.split("(")[1].index("seed changed")
    assert warning.endswith(f"{advice} with --tfgrpo-actor='python:agent:solve' --tfgrpo-record=r.jsonl")


async def test_only_a_changed_prompt_is_put_down_to_settings(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", replace(make_run([entry()]), settings={"eval_rollouts": 2}))
    replay = open_replay("r.jsonl", tmp_path)
    (seen,) = make_run([entry()]).scenarios
    replay.begin([seen], {"eval_rollouts": 4})
    with pytest.raises(ProviderError, match="seed 8 is not recorded"):
        await replay.actor(call(tmp_path, task=seen.task(), seed=8))
    with pytest.raises(ProviderError, match="the prompt changed: eval_rollouts was 2, is 4"):
        await replay.actor(call(tmp_path, task=seen.task(), prompt=Prompt(system="", user="?")))


async def test_a_replayed_model_knows_its_own_calls_how_they_ended_and_what_they_cost(tmp_path: Path) -> None:
    class Asked:
        name, identity, paid = "openai:m", {"url": "http://127.0.0.1"}, True

    asked: Any = Asked()
    cut, refused = (replace(REQUEST, seed=seed) for seed in (2, 3))
    new = replace(REQUEST, messages=(Message(role="user", content="?"),))
    calls = [
        make_call(fingerprint=fingerprint(asked, cut), prompt=text_of(cut), finish="length"),
        make_call(key="z", fingerprint=fingerprint(asked, refused), prompt=text_of(refused), cost_usd=0.125,
                  error="server: 503", answer="", usage=None),
        make_call(key="y", fingerprint="9" * 64, prompt=text_of(new), model="openai:other"),
    ]  # fmt: skip
    record(tmp_path / "r.jsonl", make_run([make_entry()], calls))
    replay = open_replay("r.jsonl", tmp_path)
    completer = replay.completer("openai:m")
    assert [replay.knows(completer, one) for one in (cut, REQUEST)] == [True, False]
    assert (await completer.complete(cut)).finish == "length"
    with pytest.raises(ModelError, match="503") as caught:
        await completer.complete(refused)
    assert (caught.value.code, caught.value.cost_usd) == ("server", 0.125)
    with pytest.raises(RecordingError, match="what the model receives changed"):
        await completer.complete(new)
    assert completer.bound(cut) == {"usd": 0.0, "tokens": 0.0}
    with pytest.raises(RecordingError, match="has no language model 'openai:n'; it has openai:m"):
        replay.completer("openai:n")


async def test_of_a_model_with_two_identities_the_latest_answers(tmp_path: Path) -> None:
    for version in (2, 1):
        run = make_run([make_entry(seed=version)], [make_call(fingerprint=f"{version}" * 64)])
        identity = {"model": "openai:m", "model_identity": {"version": version}}
        rows = {**run.identities, "optimizer": {"name": "llm", "identity": identity}}
        record(tmp_path / "r.jsonl", replace(run, identities=rows))
    assert open_replay("r.jsonl", tmp_path).completer("openai:m").identity == {"version": 1}


async def test_each_rollout_of_an_interrupted_replay_is_one_take(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, entry())
    fields = {"prompt_stamp": "p", "temperature": 0.0, "seed": 1, "scenario_id": "other"}
    done: Any = SimpleNamespace(failure=None, **fields)
    replay.resume([done], [])
    assert list(replay._takes.values()) == [1]
    replay.resume([done, done], [])
    assert list(replay._takes.values()) == [3]
