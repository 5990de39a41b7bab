"""What a page holds of trajectories: all of it while there is room, and the most telling part otherwise."""

import base64
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_frame, make_group, make_rollout, make_scenario
from support.sweeps import make_result, make_run

from pytest_tfgrpo.core.named_scores import NamedScore
from pytest_tfgrpo.core.records import Failure, Frame, Group, JudgeResult, Picture, Run
from pytest_tfgrpo.core.scenarios import Check, SimulatedUser
from pytest_tfgrpo.report.page import trajectories
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.page.layout import layout
from pytest_tfgrpo.report.page.payload.payload import index, script_json
from pytest_tfgrpo.report.page.trajectories import (
    LONGEST,
    Item,
    Packed,
    expendable,
    extremes,
    pack,
    readable,
)
from pytest_tfgrpo.report.value import build


def unpacked(packed: Packed) -> list[dict[str, Any]]:
    return [json.loads(gzip.decompress(base64.b64decode(chunk))) for chunk in packed.chunks]


def with_frames(run: Run, frames: Sequence[Frame]) -> Run:
    def changed(group: Group) -> Group:
        return replace(group, rollouts=tuple(replace(r, frames=tuple(frames)) for r in group.rollouts))

    phases = (replace(p, groups=tuple(changed(group) for group in p.groups)) for p in run.phases)
    return replace(run, phases=tuple(phases))


def packed(run: Run, room: int = 10_000_000) -> Packed:
    return pack(grid(build(run, None), run), run, room)


RUN = make_run({"a": [1, 0, 0], "b": [1, 1, 1]}, {"a": [1, 1, None], "b": [0, 1, 1]})


def test_thoughts_are_shown_apart_from_what_was_answered() -> None:
    frames = [make_frame(kind="model", thoughts="hm", output="Rome"), make_frame(kind="model", output="Rome")]
    (chunk,) = unpacked(packed(with_frames(make_run(final={"a": [1]}), frames)))
    thinks, plain = chunk["groups"]["0.0"]["rollouts"][0]["frames"]
    assert [chunk["texts"][thinks[key]] for key in ("thoughts", "output")] == ["hm", "Rome"]
    assert "thoughts" not in plain


def test_steps_say_when_they_began_inside_of_which_and_their_input_as_json() -> None:
    frames = [
        make_frame("m", kind="model", input="count"),
        make_frame("t", input={"n": 12345678901234567890, "s": "ä\n"}, started_at="2026-08-01T10:00:01.500Z"),
        make_frame("u", input=None, started_at="2026-08-01T10:00:03Z", inside=1),
        make_frame("v", started_at="yesterday"),
    ]
    (chunk,) = unpacked(packed(with_frames(make_run(final={"a": [1]}), frames)))
    model, tool, inner, odd = chunk["groups"]["0.0"]["rollouts"][0]["frames"]
    texts = [chunk["texts"][frame["input"]] for frame in (model, tool, inner)]
    assert texts == ["count", '{"n": 12345678901234567890, "s": "ä\\n"}', ""]
    assert [frame.get("at") for frame in (model, tool, inner, odd)] == [None, 0, 1500, None]
    assert [frame.get("inside") for frame in (model, tool, inner, odd)] == [None, None, 1, None]


def test_pictures_are_held_with_the_steps_and_left_out_with_them() -> None:
    run = make_run(final={"a": [1, 0, 1], "b": [1, 1]})
    data = base64.b64encode(random.Random(1).randbytes(90_000)).decode()

    def shown(group: Group) -> Group:
        pictures = (Picture(name="a.png", type="image/png", data=data), Picture(name="b.png", why="large"))
        return replace(group, rollouts=tuple(replace(one, pictures=pictures) for one in group.rollouts))

    (phase,) = run.phases
    run = replace(run, phases=(replace(phase, groups=tuple(map(shown, phase.groups))),))
    (chunk,) = unpacked(packed(run))
    (kept, named), *_ = (one["pictures"] for one in chunk["groups"]["0.0"]["rollouts"])
    assert kept == {"name": "a.png", "type": "image/png", "data": data, "why": ""}
    assert (named["name"], named["data"], named["why"]) == ("b.png", "", "large")
    small = packed(run, room=400_000)
    assert sum(map(len, small.chunks)) <= 400_000
    rollouts = [r for part in unpacked(small) for g in part["groups"].values() for r in g["rollouts"]]
    assert {"pictures" in rollout for rollout in rollouts} == {True, False}
    assert all(("pictures" in rollout) == isinstance(rollout["frames"], list) for rollout in rollouts)


def test_every_group_is_held_with_its_rollouts_scores_and_frames() -> None:
    (chunk,) = unpacked(packed(RUN))
    assert sorted(chunk["groups"]) == ["0.0", "0.1", "1.0", "1.1"]
    group = chunk["groups"]["0.1"]
    assert [rollout["score"] for rollout in group["rollouts"]] == [1.0, 1.0, None]
    frame = group["rollouts"][0]["frames"][0]
    assert chunk["texts"][frame["name"]] == "count_words"
    assert chunk["texts"][frame["output"]] == "3"
    assert chunk["texts"][chunk["scenarios"]["a"]["prompt"]] == "How many words are in 'a b a'?"


def test_a_conversation_is_held_with_its_turns_and_whom_a_model_plays() -> None:
    user = SimulatedUser(goal="A window table.", stop="It is booked.", max_turns=4)
    check = Check(kind="contains", params={"value": "four"}, turn=2)
    run = make_run(final={"a": [1]})
    talk = replace(run.scenarios[0], turns=("A table.", "For four."), user=user, checks=(check,))
    (chunk,) = unpacked(packed(replace(run, scenarios=(talk,))))
    held, texts = chunk["scenarios"]["a"], chunk["texts"]
    assert [texts[turn] for turn in held["turns"]] == ["A table.", "For four."]
    assert [(name, texts[text]) for name, text in held["user"]] == [
        ("goal", "A window table."),
        ("stop", "It is booked."),
        ("messages at most", "4"),
    ]
    assert held["checks"][0][0] == "contains (turn 2)"
    (question,) = unpacked(packed(run))
    assert not {"turns", "user"} & question["scenarios"]["a"].keys()


def test_a_text_that_comes_again_is_held_once() -> None:
    (chunk,) = unpacked(packed(with_frames(RUN, [make_frame(output="long text " * 50)] * 5)))
    assert sum("long text" in text for text in chunk["texts"]) == 1


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_survives(text: str) -> None:
    run = with_frames(make_run(final={"a": [1]}), [make_frame(output=text, input={"x": text})])
    (chunk,) = unpacked(packed(run))
    frame = chunk["groups"]["0.0"]["rollouts"][0]["frames"][0]
    assert chunk["texts"][frame["output"]] == text


def test_a_text_beyond_the_limit_says_how_much_it_lacks() -> None:
    (chunk,) = unpacked(packed(with_frames(RUN, [make_frame(output="x" * (LONGEST + 7))])))
    held = max(chunk["texts"], key=len)
    assert "7 characters left out" in held


def test_the_best_and_the_worst_of_a_group_are_compared_and_of_equals_the_cheapest() -> None:
    rollouts = tuple(
        make_rollout(i, c, tokens=t) for i, (c, t) in enumerate([(1, 9), (1, 5), (0, 7), (0, 3)])
    )
    assert extremes(make_group([1, 1, 0, 0], rollouts=rollouts)) == (
        rollouts[1].rollout_id,
        rollouts[2].rollout_id,
    )
    assert len(extremes(make_group([None, 1.0]))) == 1
    assert extremes(make_group([None])) == ()


def test_the_least_telling_goes_first() -> None:
    dull = make_group([1, 1], scenario_id="dull", group_id="dull")
    telling = make_group([1, 0.5, 0], scenario_id="telling", group_id="telling")
    kinds = [(item.kind, item.key) for item in expendable([telling, dull])]
    assert kinds == [
        ("frames", "telling.r1"),
        ("frames", "dull.r0"),
        ("frames", "dull.r1"),
        ("frames", "telling.r0"),
        ("frames", "telling.r2"),
        ("group", "dull"),
        ("group", "telling"),
    ]


def crowded() -> Run:
    rng = random.Random(1)
    ids = [f"s{i}" for i in range(40)]
    scenarios = tuple(make_scenario(id_, split="eval", stamp=f"{n:064x}") for n, id_ in enumerate(ids))
    result = make_result({id_: [1, 0, 0.5] for id_ in ids}, epoch=2, scenarios=scenarios)

    def told(group: Group) -> Group:
        noisy = (replace(r, frames=(make_frame(output=rng.randbytes(400).hex()),)) for r in group.rollouts)
        return replace(group, rollouts=tuple(noisy))

    phase = replace(result, groups=tuple(map(told, result.groups)))
    return replace(make_run(final={"s0": [1]}), scenarios=scenarios, phases=(phase,))


@pytest.mark.parametrize("room", [60_000, 30_000, 6_000, 3_000, 10])
def test_what_does_not_fit_is_left_out_and_counted(room: int) -> None:
    run = crowded()
    found = packed(run, room)
    assert room * 0.8 < sum(map(len, found.chunks)) <= room or room < 5_000
    rollouts = [
        r for chunk in unpacked(found) for group in chunk["groups"].values() for r in group["rollouts"]
    ]
    bare = sum(not isinstance(r["frames"], list) for r in rollouts)
    assert found.left_out["group"] == 40 - len(found.chunk_of)
    assert found.left_out["frames"] == bare + 3 * found.left_out["group"]


def test_a_page_never_takes_more_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    run = crowded()
    value = build(run, None)
    limit = len(html(value, run)) - 20_000
    monkeypatch.setattr("pytest_tfgrpo.report.page.html.LIMIT", limit)
    made = html(value, run)
    assert limit - 10_000 < len(made.encode()) <= limit
    assert '"left_out":{"frames":' in made


def test_the_two_ends_of_a_group_stay_when_what_lies_between_must_go() -> None:
    found = packed(crowded(), 60_000)
    bare = {
        r["index"]
        for chunk in unpacked(found)
        for group in chunk["groups"].values()
        for r in group["rollouts"]
        if not isinstance(r["frames"], list)
    }
    assert 0 < found.left_out["frames"] <= 40
    assert bare == {2}


def test_inputs_read_by_key_and_keep_their_lines() -> None:
    assert readable({"days": 60, "name": "x", "code": "a\nb"}) == 'days: 60\nname: "x"\ncode:\na\nb'
    assert readable(None) == ""
    assert readable("as it is") == "as it is"
    assert readable([1, float("nan")]) == "[1, NaN]"


@given(st.text(st.characters(codec=None)))
def test_data_cannot_end_its_element(text: str) -> None:
    found = script_json({"a": text + "</script><!--<script>"})
    assert not set("<>&\u2028\u2029") & set(found)
    assert json.loads(found) == {"a": text + "</script><!--<script>"}


def test_the_index_has_what_a_map_needs() -> None:
    value = build(RUN, None) | {"flaky": [{"scenario": "a"}]}
    found = index(layout(value, RUN), packed(RUN))
    assert [column["label"] for column in found["columns"]] == ["baseline", "epoch2-eval"]
    assert [column["name"] for column in found["columns"]] == ["baseline", "final"]
    assert (found["last"], found["splits"], found["flaky"]) == (1, {"eval": [0, 1]}, ["a"])
    assert found["rows"][0][4:] == [0, 1, [0.3333, 3, 0, 1, 0], [1.0, 2, 1, 2, 0]]


def test_a_report_alone_gives_the_same_map_without_rollouts() -> None:
    value = build(RUN, None)
    with_run, without = grid(value, RUN), grid(value, None)
    assert [c.label for c in with_run.columns] == [c.label for c in without.columns]
    assert [replace(c, solved=None) for row in with_run.rows for c in row.cells if c] == [
        c for row in without.rows for c in row.cells if c
    ]


@pytest.mark.parametrize(
    ("gone", "wanted", "left_out"),
    [(0, 0, 0), (0, 1, 1), (0, 30, 1), (0, 31, 2), (1, 20, 2), (1, 21, 3), (2, 999, 3), (3, 1, 3)],
)
def test_so_many_items_go_as_save_what_is_wanted(gone: int, wanted: float, left_out: int) -> None:
    items = [Item("frames", str(n), size) for n, size in enumerate((30, 20, 10))]
    assert trajectories._spare(items, gone, wanted) == left_out


@pytest.mark.parametrize(
    ("gone", "spare", "left_out"),
    [(3, 9, 3), (3, 10, 2), (3, 29, 2), (3, 30, 1), (2, 999, 0), (3, 60, 0), (0, 60, 0)],
)
def test_items_come_back_while_there_is_room_for_the_next(gone: int, spare: float, left_out: int) -> None:
    items = [Item("frames", str(n), size) for n, size in enumerate((30, 20, 10))]
    assert trajectories._give_back(items, gone, spare) == left_out


def test_a_chunk_is_closed_once_it_is_large_and_says_which_group_lies_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trajectories, "CHUNK", 10)
    found = packed(RUN)
    assert found.chunk_of == {(0, 0): 0, (0, 1): 1, (1, 0): 2, (1, 1): 3}
    assert [[*chunk["groups"]] for chunk in unpacked(found)] == [["0.0"], ["0.1"], ["1.0"], ["1.1"]]
    assert found.left_out == {}


def test_rollouts_that_are_kept_lose_their_frames_late() -> None:
    group = make_group([1, 0.5, 0.25, 0], group_id="g")
    kinds = [item.key for item in expendable([group], kept={"g.r2"}) if item.kind == "frames"]
    assert kinds == ["g.r1", "g.r0", "g.r2", "g.r3"]


def test_what_rewarders_judge_and_test_said_is_held_by_name() -> None:
    opinion = JudgeResult(score=0.5, reason="It is short.", criteria={"short": 1.0})
    scored = NamedScore(name="words", value=0.25, why="two of eight")
    run = make_run(final={"a": [1, 0]})

    def told(group: Group) -> Group:
        first, second = group.rollouts
        failure = Failure(code="timeout", message="no answer in 5 s")
        first = replace(first, opinion=opinion, scores=(scored, replace(scored, name="x", why="")))
        second = replace(second, status="failed", failure=failure, checks=(), frames=())
        score = replace(group.scores[0], extra={"style": 0.75}, evidence={"style": "plain"})
        return replace(group, rollouts=(first, second), scores=(score, group.scores[1]))

    phases = (replace(p, groups=tuple(map(told, p.groups))) for p in run.phases)
    (chunk,) = unpacked(packed(replace(run, phases=tuple(phases))))
    texts = chunk["texts"]
    one, other = chunk["groups"]["0.0"]["rollouts"]
    assert one["extra"] == {"style": 0.75, "judge.short": 1.0, "test.words": 0.25, "test.x": 0.25}
    assert {name: texts[why] for name, why in one["evidence"].items()} == {
        "style": "plain",
        "test.words": "two of eight",
    }
    assert (one["judge"][0], texts[one["judge"][1]]) == (0.5, "It is short.")
    assert "failure" not in one
    assert not {"judge", "evidence"} & other.keys()
    assert (other["extra"], other["frames"]) == ({}, [])
    assert [other["failure"][0], texts[other["failure"][1]]] == ["timeout", "no answer in 5 s"]


def test_a_frame_is_held_with_its_error_and_why_it_ended_where_there_is_one() -> None:
    bad = make_frame(error="no such tool", finish="length", latency_ms=1.236)
    (chunk,) = unpacked(packed(with_frames(make_run(final={"a": [1]}), [make_frame(), bad])))
    plain, odd = chunk["groups"]["0.0"]["rollouts"][0]["frames"]
    assert not {"error", "finish"} & plain.keys()
    assert (chunk["texts"][odd["error"]], odd["finish"], odd["ms"]) == ("no such tool", "length", 1.24)


def test_secrets_are_taken_out_of_texts() -> None:
    secret = "ghp_" + "a8Gk2LmQ9xZr4TnV7bYc1WdE3fHj5KpS0uRt"
    (chunk,) = unpacked(packed(with_frames(make_run(final={"a": [1]}), [make_frame(output=secret)])))
    assert not any(secret in text for text in chunk["texts"])


def test_digests_of_files_are_no_part_of_a_check() -> None:
    check = Check(kind="tests", params={"hidden": "a.tar.gz", "hidden_sha256": "0" * 64})
    assert trajectories.told_params(check) == {"hidden": "a.tar.gz"}


def left_out_of(
    sizes: Sequence[int], room: int, monkeypatch: pytest.MonkeyPatch, ratio: float = 1.0, share: float = 1.0
) -> list[int]:
    """Return how many items each try leaves out; a group takes `share` of its size less what is left out."""
    tries: list[int] = []
    items = [Item("frames", str(n), size) for n, size in enumerate(sizes)]

    def made(groups: object, told: object, gone: Sequence[Item]) -> Packed:
        tries.append(len(gone))
        return Packed(chunks=("x" * int(share * sum(sizes) - sum(item.size for item in gone)),))

    monkeypatch.setattr(trajectories, "_pack", made)
    monkeypatch.setattr(trajectories, "_ratios", lambda *_: (ratio, ratio))
    monkeypatch.setattr(trajectories, "expendable", lambda *_: iter(items))
    monkeypatch.setattr(trajectories, "_size", lambda _: sum(sizes) / 4)  # RUN has four groups
    packed(RUN, room)
    return tries


@pytest.mark.parametrize(
    ("sizes", "room", "how", "gone"),
    [
        ([10] * 10, 100, {}, 0),
        ([10] * 10, 99, {}, 1),
        ([10] * 10, 50, {}, 6),
        ([10] * 10, 50, {"share": 1.2}, 8),
        ([10] * 10, 50, {"ratio": 2.0}, 7),
        ([10] * 10, 100, {"share": 1.2}, 3),
        ([1] * 100, 90, {"ratio": 0.95}, 13),
        ([10] * 2, 1, {"share": 2.0}, 2),
    ],
)
def test_as_much_is_left_out_as_is_needed_and_too_much_is_put_back(
    sizes: list[int], room: int, how: dict[str, float], gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert left_out_of(sizes, room, monkeypatch, **how)[-1] == gone


def test_a_chunk_that_is_not_full_is_kept_and_every_group_says_where_it_lies() -> None:
    found = packed(RUN)
    assert found.chunk_of == {(0, 0): 0, (0, 1): 0, (1, 0): 0, (1, 1): 0}
    assert found.left_out == {}
    (chunk,) = unpacked(found)
    ids = {place: group["scenario"] for place, group in chunk["groups"].items()}
    assert ids == {"0.0": "a", "0.1": "a", "1.0": "b", "1.1": "b"}


def test_equal_ends_of_a_group_are_two_rollouts() -> None:
    rollouts = tuple(make_rollout(i, 1, tokens=5) for i in range(3))
    assert extremes(make_group([1, 1, 1], rollouts=rollouts)) == (
        rollouts[0].rollout_id,
        rollouts[2].rollout_id,
    )


def test_a_page_finds_what_it_shows_under_the_names_that_its_scripts_know() -> None:
    run = with_frames(
        make_run(final={"a": [1, 0.5, 0]}), [make_frame(latency_ms=1.234, cost_usd=0.5, tokens=7)]
    )
    (chunk,) = unpacked(packed(run))
    group, scenario = chunk["groups"]["0.0"], chunk["scenarios"]["a"]
    source = run.phases[-1].groups[0]
    first, score = source.rollouts[0], source.scores[0]
    assert group["pair"] == list(extremes(source))
    assert (group["id"], group["informative"], group["scenario"]) == (
        source.group_id,
        source.informative,
        "a",
    )
    rollout = group["rollouts"][0]
    assert {
        name: rollout[name] for name in ("id", "index", "status", "seed", "temperature", "score", "reward")
    } == {
        "id": first.rollout_id,
        "index": 0,
        "status": first.status,
        "seed": str(first.seed),
        "temperature": first.temperature,
        "score": score.gt_score,
        "reward": score.reward,
    }
    assert {name: rollout[name] for name in ("rank", "advantage", "tokens", "cost", "ms", "prompt")} == {
        "rank": score.relative_rank,
        "advantage": score.advantage,
        "tokens": first.tokens,
        "cost": first.cost_usd,
        "ms": round(first.latency_ms, 2),
        "prompt": first.prompt_stamp,
    }
    frame = rollout["frames"][0]
    assert [frame[name] for name in ("kind", "tokens", "cost", "ms")] == ["tool", 7, 0.5, 1.23]
    checks = [[check.kind, check.weight, check.credit] for check in first.checks]
    assert [row[:3] for row in rollout["checks"]] == checks
    assert (scenario["truth"], scenario["checker"], scenario["attachments"]) == ("checks", "", [])
    assert scenario["stamp"] == run.scenarios[0].stamp


def test_a_text_counts_once_to_the_size_of_a_chunk() -> None:
    told = trajectories.told_of(RUN)
    group = with_frames(RUN, [make_frame(output="x" * 1000)]).phases[-1].groups[0]
    writer = trajectories.ChunkWriter()
    writer.add((0, 0), group, told)
    once = writer.size
    assert once > 1000 + len(writer.groups["0.0"])
    writer.add((1, 0), group, told)
    assert writer.size - once == len(writer.groups["1.0"])
