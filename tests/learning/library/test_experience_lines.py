import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience
from support.reached import reached, reaches

from pytest_tfgrpo.core.lessons import Experience, Reward, Support, Tombstone, ToolStat
from pytest_tfgrpo.core.wire.schema import load_schema, violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.library.experience_lines import (
    check,
    encode,
    load,
    read_line,
    read_record,
)

shares = st.floats(0, 1)
amounts = st.floats(0, 1e15)
counts = st.integers(0, 10**15)
texts = st.text(max_size=20)
ids = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)
lessons = st.lists(
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8), min_size=1, max_size=32
)
times = st.sampled_from(
    ["", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.123456+00:00"]
)


def test_the_largest_number_is_stored() -> None:
    lesson = make_experience(epoch=10**15)
    assert read_line(encode(lesson)) == lesson.id
    check(lesson)


@st.composite
def experiences(draw: st.DrawFn) -> Experience:
    quantity = draw(st.sampled_from(["gt_score", "total_reward"]))
    stats = st.builds(ToolStat, tool=texts, tokens=counts, latency_ms=amounts, cost_usd=st.none() | amounts)
    return make_experience(
        id=draw(ids),
        run_id=draw(texts),
        domain=draw(st.text(min_size=1, max_size=10)),
        epoch=draw(counts),
        group_id=draw(texts),
        summary32=" ".join(draw(lessons)),
        polarity=draw(st.sampled_from(["do", "avoid"])),
        reward=Reward(**{quantity: draw(shares)}, relative_rank=draw(shares)),
        support=Support(groups=draw(counts), rollouts=draw(counts)),
        tool_stats=tuple(draw(st.lists(stats, max_size=3))),
        parents=tuple(draw(st.lists(ids, max_size=3))),
        created_at=draw(times),
    )


@pytest.mark.parametrize("both", [{}, {"gt_score": 1.0, "total_reward": 1.0}])
def test_a_reward_that_is_not_one_of_two_quantities_is_refused(both: dict[str, float]) -> None:
    value = to_wire(make_experience()) | {"reward": {**both, "relative_rank": 1.0}}
    with pytest.raises(ValueError, match="either gt_score or total_reward"):
        read_line(json.dumps(value).encode())
    assert violations("experience", value) != []


@given(experiences())
def test_a_record_survives_its_line(record: Experience) -> None:
    line = encode(record)
    assert read_line(line) == record.id
    assert load(line) == record


@given(experiences(), st.randoms(use_true_random=False))
def test_another_spelling_of_a_record_reads_as_the_same(record: Experience, chance: Any) -> None:
    items = list(to_wire(record).items())
    chance.shuffle(items)
    line = json.dumps(dict(items), indent=1, ensure_ascii=False).replace("\n", " ").encode("utf-8", "replace")
    if b"?" not in line:  # a lone surrogate has no such spelling
        assert read_line(line) == record.id
        assert load(line) == record


@given(experiences())
def test_a_stored_record_is_valid_under_the_packaged_schema(record: Experience) -> None:
    assert violations("experience", json.loads(encode(record))) == []


def test_a_tombstone_survives_its_line_and_fits_its_schema() -> None:
    tombstone = Tombstone(
        id="a1", run_id="run1", epoch=2, reason="superseded: é", created_at="2026-01-01T00:00:00Z"
    )
    assert read_line(encode(tombstone)) == tombstone
    schema = load_schema("experience")
    assert (
        violations({**schema["$defs"]["tombstone"], "$defs": schema["$defs"]}, json.loads(encode(tombstone)))
        == []
    )


SPOILED: dict[str, tuple[str, Any]] = {
    "unstamped": ("stamp_signature", ""),
    "not a sha256": ("stamp_signature", "A" * 64),
    "33 words": ("summary32", "word " * 33),
    "no words": ("summary32", " \t"),
    "unknown polarity": ("polarity", "maybe"),
    "score over 1": ("reward", {"gt_score": 1.5, "relative_rank": 0.5}),
    "rank over 1": ("reward", {"gt_score": 1.0, "relative_rank": 1.5}),
    "negative rank": ("reward", {"gt_score": 1.0, "relative_rank": -0.5}),
    "score as text": ("reward", {"gt_score": "1", "relative_rank": 0.5}),
    "score as truth value": ("reward", {"gt_score": True, "relative_rank": 0.5}),
    "missing rank": ("reward", {"gt_score": 1.0}),
    "fractional epoch": ("epoch", 1.5),
    "negative epoch": ("epoch", -1),
    "empty domain": ("domain", ""),
    "no id": ("id", ""),
    "id of a path": ("id", "../a"),
    "local time": ("created_at", "yesterday"),
    "unknown key": ("colour", "red"),
    "parent that is no id": ("parents", ["a b"]),
    "second parent that is no id": ("parents", ["a", "a b"]),
    "very many rollouts": ("support", {"groups": 1, "rollouts": 10**15 + 1}),
    "very many groups": ("support", {"groups": 10**15 + 1, "rollouts": 1}),
    "second tool with endless latency": (
        "tool_stats",
        [{"tool": "t", "tokens": 1, "latency_ms": ms, "cost_usd": None} for ms in (1.0, 1e300)],
    ),
    "endless latency": ("tool_stats", [{"tool": "t", "tokens": 1, "latency_ms": 1e300, "cost_usd": None}]),
    "very many tokens": (
        "tool_stats", [{"tool": "t", "tokens": 10**15 + 1, "latency_ms": 1.0, "cost_usd": None}]
    ),
    "very long": ("tool_stats", [{"tool": "t", "tokens": 1, "latency_ms": 1e15 + 1, "cost_usd": None}]),
    "very dear": ("tool_stats", [{"tool": "t", "tokens": 1, "latency_ms": 1.0, "cost_usd": 1e15 + 0.5}]),
    "an epoch too far": ("epoch", 10**15 + 1),
    "unknown key of a tool": (
        "tool_stats", [{"tool": "t", "tokens": 1, "latency_ms": 1.0, "cost_usd": None, "x": 1}]
    ),
}  # fmt: skip


def test_the_largest_numbers_are_read_as_they_are_written() -> None:
    most = 10**15
    stat = ToolStat(tool="t", tokens=most, latency_ms=float(most), cost_usd=float(most))
    support = Support(groups=most - 1, rollouts=most)
    record = replace(make_experience(), epoch=most, support=support, tool_stats=(stat,))
    line = encode(record)
    assert read_line(line) == record.id
    assert load(line) == record


@pytest.mark.parametrize(("key", "value"), SPOILED.values(), ids=SPOILED)
def test_store_and_schema_refuse_the_same_records(key: str, value: Any) -> None:
    data = to_wire(make_experience()) | {key: value}
    with pytest.raises(ValueError, match=r"\S"):
        read_record(copy.deepcopy(data))
    with pytest.raises(ValueError, match=r"\S"):
        read_line(json.dumps(data, separators=(",", ":")).encode())
    assert violations("experience", data)


@pytest.mark.parametrize("key", sorted(load_schema("experience")["required"]))
def test_a_missing_key_is_refused_by_name(key: str) -> None:
    data = to_wire(make_experience())
    del data[key]
    with pytest.raises(ValueError, match=key):
        read_record(data)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_name(number: float) -> None:
    spoiled = make_experience(reward=Reward(gt_score=number, relative_rank=0.5))
    with pytest.raises(ValueError, match="gt_score"):
        check(spoiled)
    with pytest.raises(ValueError, match="gt_score"):
        encode(spoiled)
    with pytest.raises(ValueError, match="gt_score"):
        read_line(encode(make_experience()).replace(b'"gt_score":1.0', b'"gt_score":NaN'))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'"text"',
        b"\xff\xfe",
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"tombstone":1}',
        b"1" * 9000,
    ],
    ids=range(10),
)
def test_a_line_that_is_no_record_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_line(line)


@reaches("reads", "refused")
@given(experiences(), st.data())
def test_a_damaged_line_is_refused_or_reads_as_a_valid_record(
    record: Experience, data: st.DataObject
) -> None:
    line = bytearray(encode(record))
    harmless = st.sampled_from([n for n, byte in enumerate(line) if byte in b"019ea"])
    at = data.draw(st.integers(0, len(line) - 1) | harmless)
    line[at] = data.draw(st.integers(0, 255) | st.sampled_from(b"019ea"))
    try:
        assert isinstance(read_line(bytes(line)), str)
    except ValueError:
        reached("refused")
        return
    reached("reads")
    check(load(bytes(line)))


def test_a_tombstone_says_so_with_true_and_has_an_epoch_that_can_be() -> None:
    data = to_wire(Tombstone(id="a1", run_id="run1", epoch=2, reason="old"))
    assert isinstance(read_record({"tombstone": True, **data}), Tombstone)
    with pytest.raises(ValueError, match="expected true, got 1"):
        read_record({"tombstone": 1, **data})
    with pytest.raises(ValueError, match="epoch must be finite and between 0 and 1e"):
        read_record({"tombstone": True, **data, "epoch": -1})
