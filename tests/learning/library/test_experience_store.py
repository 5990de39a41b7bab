import fcntl
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import PACK_STAMP, make_experience, make_pack
from support.reached import reached, reaches
from support.syncs import Syncs

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.lessons import Experience, Reward, Tombstone
from pytest_tfgrpo.learning.library.experience_lines import encode
from pytest_tfgrpo.learning.library.experience_store import ExperienceStore, export_camel
from pytest_tfgrpo.learning.library.retrieval import select


def file_of(folder: Path, *records: Experience | Tombstone) -> Path:
    path = folder / "experiences.jsonl"
    path.write_bytes(b"".join(encode(record) + b"\n" for record in records))
    return path


def tombstone(id_: str, run_id: str = "run1") -> Tombstone:
    return Tombstone(id=id_, run_id=run_id, epoch=2, reason="size cap")


def test_an_append_returns_only_after_what_it_wrote_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "demo" / "experiences.jsonl"
    syncs = Syncs(monkeypatch)
    with ExperienceStore.open(path) as store:
        assert syncs.seen == [("demo", 0)]  # the name of the new file
        for n in range(3):
            store.append([make_experience(n)])
            assert syncs.seen[n + 1 :] == [("experiences.jsonl", path.stat().st_size)]
    whole = path.read_bytes()
    for torn in (whole[:-7], whole[:-1]):  # cut off, or lacking only its end
        path.write_bytes(torn)
        syncs.seen.clear()
        ExperienceStore.open(path).close()
        assert syncs.seen[0] == ("experiences.jsonl", path.stat().st_size)


def test_what_was_appended_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "experiences.jsonl"
    records = [make_experience(0), tombstone(f"{0:016x}"), make_experience(1, domain="été\n\ud800")]
    with ExperienceStore.open(path) as store:
        assert store.append(records[:2]) == 2
        assert store.append(records[2:]) == 1
        assert store.append([]) == 0
    with ExperienceStore.open(path) as store:
        assert list(store.records()) == records
        assert len(store) == 2
        assert store.get(records[2].id) == records[2]
        assert records[0].id in store
        assert store.skipped == []


KEYS = [
    "id", "run_id", "task_id", "domain", "prompt_pack_id", "epoch", "group_id", "summary32", "polarity",
    "reward", "support", "tool_stats", "stamp_signature", "actor", "parents", "created_at", "manifest_path",
]  # fmt: skip


def test_the_file_is_one_json_object_a_line_with_snake_case_keys(tmp_path: Path) -> None:
    path = tmp_path / "experiences.jsonl"
    with ExperienceStore.open(path) as store:
        store.append([make_experience(0), tombstone("a")])
    experience, removal = map(json.loads, path.read_text().splitlines())
    assert list(experience) == KEYS
    assert list(experience["reward"]) == ["gt_score", "relative_rank"]
    assert list(experience["support"]) == ["groups", "rollouts"]
    assert [list(stat) for stat in experience["tool_stats"]] == [["tool", "tokens", "latency_ms", "cost_usd"]]
    assert removal["tombstone"] is True


def test_appending_is_idempotent_by_id(tmp_path: Path) -> None:
    with ExperienceStore.open(tmp_path / "e.jsonl") as store:
        assert store.append([make_experience(0), make_experience(0, summary32="other"), tombstone("a")]) == 2
        size = (tmp_path / "e.jsonl").stat().st_size
        assert store.append([make_experience(0, created_at=""), tombstone("a")]) == 0
        assert store.append([tombstone("a", run_id="run2")]) == 1
        assert store.get(f"{0:016x}").summary32 == make_experience(0).summary32
    assert (tmp_path / "e.jsonl").stat().st_size > size


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        (make_experience(1, summary32="word " * 33), "33 words"),
        (make_experience(1, stamp_signature=""), "stamp"),
        (make_experience(1, reward=Reward(gt_score=float("nan"), relative_rank=0.5)), "gt_score"),
        (make_experience(1, reward=Reward(gt_score=2.0, relative_rank=0.5)), "gt_score"),
        (make_experience(1, epoch="1"), "epoch"),
        (make_experience(1, summary32=b"bytes"), "bytes"),
        (make_experience(1, id="../x"), "id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_record_that_must_not_be_stored_is_refused_with_its_whole_batch(
    tmp_path: Path, spoiled: Experience, reason: str
) -> None:
    path = tmp_path / "e.jsonl"
    with ExperienceStore.open(path) as store:
        with pytest.raises(StoreError, match=rf"e\.jsonl.*refuses.*{reason}"):
            store.append([make_experience(0), spoiled])
        assert store.append([make_experience(0)]) == 1
    assert len(path.read_bytes().splitlines()) == 1


def test_a_lower_word_cap_holds_for_what_is_appended_and_not_for_what_is_on_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, make_experience(0, summary32="one two three four five"))
    with ExperienceStore.open(path, max_words=4) as store:
        assert len(store) == 1
        with pytest.raises(StoreError, match="5 words; a lesson has 1 to 4"):
            store.append([make_experience(1, summary32="one two three four five")])
        store.append([make_experience(1, summary32="one two three four")])
    with (
        ExperienceStore.open(path, max_words=31) as store,
        pytest.raises(StoreError, match="32 words; a lesson has 1 to 31"),
    ):
        store.append([make_experience(2, summary32="word " * 32)])


def test_a_malformed_line_is_skipped_counted_and_named(tmp_path: Path) -> None:
    path = file_of(tmp_path, make_experience(0))
    good = path.read_bytes()
    path.write_bytes(
        good + b"garbage\n" + encode(make_experience(1)).replace(b'"epoch"', b'"epok"') + b"\n\n"
    )
    with ExperienceStore.open(path) as store:
        assert [line for line, _ in store.skipped] == [2, 3, 4]
        assert "epok" in store.skipped[1].reason
        store.append([make_experience(2)])
        assert [e.id for e in store.records()] == [make_experience(0).id, make_experience(2).id]
    assert path.read_bytes().startswith(good + b"garbage\n")


def test_a_line_without_end_is_an_error_with_the_limit_and_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("CHUNK", 1_000), ("MAX_LINE", 10_000)):
        monkeypatch.setattr(f"pytest_tfgrpo.learning.library.experience_store.{name}", size)
    path = file_of(tmp_path, make_experience(1))
    longest = path.read_bytes() + b"x" * 9_000 + b"\n" + encode(make_experience(2)) + b"\n"
    path.write_bytes(longest)
    with ExperienceStore.open(path) as store:
        assert (len(store), len(store.skipped)) == (2, 1)
    path.write_bytes(longest + b"\0" * 20_000)
    with pytest.raises(StoreError, match=r"experiences.jsonl:4: the line has more than 10000 bytes"):
        ExperienceStore.open(path)
    assert path.read_bytes() == longest + b"\0" * 20_000


def test_what_was_wrong_with_the_file_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "experiences.jsonl"
    with ExperienceStore.open(path) as store:
        store.append([make_experience(0)])
        assert store.complaints == []
    path.write_bytes(b"garbage\n" + path.read_bytes() + b'{"torn')
    with ExperienceStore.open(path) as store:
        skipped, torn = store.complaints
    assert skipped.startswith(f"{path}: 1 malformed lines were skipped; the first is line 1: ")
    assert torn == f"{path}: an incomplete last line of 6 bytes was removed"


def test_a_line_of_the_most_bytes_is_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("CHUNK", 1_000), ("MAX_LINE", 10_000)):
        monkeypatch.setattr(f"pytest_tfgrpo.learning.library.experience_store.{name}", size)
    path = file_of(tmp_path, make_experience(1))
    path.write_bytes(b"x" * 10_000 + b"\n" + path.read_bytes())
    with ExperienceStore.open(path) as store:
        assert [line for line, _ in store.skipped] == [1]
        assert list(store.records()) == [make_experience(1)]


def test_of_several_malformed_lines_the_first_is_told_and_the_records_between_them_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "experiences.jsonl"
    path.write_bytes(b"garbage\n" + encode(make_experience(0)) + b"\nmore garbage\n")
    with ExperienceStore.open(path) as store:
        (told,) = store.complaints
        assert list(store.records()) == [make_experience(0)]
    assert told.startswith(f"{path}: 2 malformed lines were skipped; the first is line 1: ")


def test_each_torn_line_that_is_found_while_the_store_is_open_counts(tmp_path: Path) -> None:
    path = file_of(tmp_path, make_experience(0))
    with ExperienceStore.open(path) as store:
        for _ in range(2):
            path.write_bytes(path.read_bytes() + b'{"torn')
            store.refresh()
        (told,) = store.complaints
    assert told == f"{path}: an incomplete last line of 12 bytes was removed"


def test_of_two_lines_with_one_id_the_first_holds(tmp_path: Path) -> None:
    first, second = make_experience(0), make_experience(0, summary32="Another text.")
    with ExperienceStore.open(file_of(tmp_path, first, second)) as store:
        assert store.get(first.id) == first
        assert store.fetch_top(domain="text", limit=2) == (first,)


def test_a_write_that_fails_half_way_leaves_what_was_committed_and_the_store_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, make_experience(0))
    before = path.read_bytes()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with ExperienceStore.open(path) as store:
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", full)
            with pytest.raises(StoreError, match=r"cannot write .*experiences\.jsonl.*No space left"):
                store.append([make_experience(1)])
        assert path.read_bytes() == before
        assert store.append([make_experience(1)]) == 1
        assert store.get(make_experience(1).id) == make_experience(1)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_file_cut_at_any_byte_holds_the_records_before_and_takes_the_rest_again(
    data: st.DataObject,
) -> None:
    batches = [[make_experience(10 * b + i, summary32=f"é {b} {i}") for i in range(b + 1)] for b in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.jsonl"
        with ExperienceStore.open(path) as store:
            ends = [store.append(batch) and path.stat().st_size for batch in batches]
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        with ExperienceStore.open(path) as store:
            kept = [e.id for e in store.records()]
            everything = [e for batch in batches for e in batch]
            assert kept == [e.id for e in everything][: len(kept)]
            acknowledged = sum(len(b) for b, end in zip(batches, ends, strict=True) if end <= cut)
            assert len(kept) >= acknowledged
            assert store.skipped == []
            assert store.append(everything) == len(everything) - len(kept)
        assert path.read_bytes() == whole


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path: Path) -> None:
    path = file_of(tmp_path, make_experience(0), make_experience(1))
    path.write_bytes(path.read_bytes()[:-1])
    with ExperienceStore.open(path) as store:
        assert len(store) == 2
        assert store.repaired_bytes == 0
        store.append([make_experience(2)])
    with ExperienceStore.open(path) as store:
        assert len(store) == 3


def beneath_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "e.jsonl"


def a_folder(folder: Path) -> Path:
    (folder / "e.jsonl").mkdir()
    return folder / "e.jsonl"


@pytest.mark.parametrize("place", [beneath_a_file, a_folder])
def test_a_path_that_cannot_be_a_store_is_named(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    with pytest.raises(StoreError, match=r"e\.jsonl"):
        ExperienceStore.open(place(tmp_path))


def test_a_file_that_was_removed_replaced_or_cut_while_in_use_is_an_error_and_no_loss(tmp_path: Path) -> None:
    path = file_of(tmp_path, make_experience(0))
    with ExperienceStore.open(path) as store:
        path.rename(tmp_path / "moved")
        with pytest.raises(StoreError, match="cannot find"):
            store.append([make_experience(1)])
        file_of(tmp_path)
        with pytest.raises(StoreError, match="replaced"):
            store.append([make_experience(1)])
    with ExperienceStore.open(tmp_path / "moved") as store:
        (tmp_path / "moved").write_bytes(b"")
        with pytest.raises(StoreError, match="truncated"):
            store.append([make_experience(1)])


def test_a_store_is_locked_only_while_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    with ExperienceStore.open(path) as store, path.open() as other:
        store.append([make_experience(0)])
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("is_pipe", "problem"), [(True, "it is not a regular file"), (False, "cannot sync the folder of")]
)
def test_a_store_that_cannot_be_used_is_closed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_pipe: bool, problem: str
) -> None:
    def fails(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    path, opened, real = tmp_path / "e.jsonl", list[int](), os.open
    if is_pipe:
        os.mkfifo(path)
    with monkeypatch.context() as patched:
        patched.setattr("pytest_tfgrpo.learning.library.experience_store.sync_folder", fails)
        patched.setattr("os.open", lambda *given: opened.append(real(*given)) or opened[-1])
        with pytest.raises(StoreError, match=problem):
            ExperienceStore.open(path)
    (fd,) = opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_closed_store_refuses_to_append(tmp_path: Path) -> None:
    store = ExperienceStore.open(tmp_path / "e.jsonl")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append([make_experience(0)])


def test_fetch_top_finds_the_best_of_the_domain_and_stamp(tmp_path: Path) -> None:
    def scored(n: int, score: float, **changes: object) -> Experience:
        return make_experience(n, reward=Reward(gt_score=score, relative_rank=score), **changes)

    records = [
        scored(0, 0.4),
        scored(1, 0.9),
        scored(2, 1.0, domain="dates"),
        scored(3, 0.8, stamp_signature="b" * 64),
        scored(4, 0.2),
    ]
    with ExperienceStore.open(tmp_path / "e.jsonl") as store:
        store.append(records)
        assert store.fetch_top(domain="text", limit=9, min_reward=0.3) == (records[1], records[3], records[0])
        assert store.fetch_top(domain="text", limit=9, min_reward=1.0, weights=(0.5, 0.5)) == ()
        assert store.fetch_top(domain="dates", limit=9, min_reward=1.0, weights=(0.5, 0.5)) == (records[2],)
        assert store.fetch_top(domain="text", limit=9, stamp=PACK_STAMP) == (
            records[1],
            records[0],
            records[4],
        )
        assert store.fetch_top(domain="text", limit=1, stamp="b" * 64) == (records[3],)
        assert store.fetch_top(domain="text", limit=0) == ()
        assert store.fetch_top(domain="nothing", limit=3) == ()


def test_a_removed_or_superseded_experience_is_not_fetched_and_stays_on_file(tmp_path: Path) -> None:
    old, gone, new = make_experience(0), make_experience(1), make_experience(2, parents=("x", f"{0:016x}"))
    with ExperienceStore.open(tmp_path / "e.jsonl") as store:
        store.append([tombstone(gone.id), old])
        assert store.fetch_top(domain="text", limit=9) == (old,)
        store.append([gone, new])
        assert store.fetch_top(domain="text", limit=9) == (new,)
        assert store.get(old.id) == old
    with ExperienceStore.open(tmp_path / "e.jsonl") as store:
        assert store.fetch_top(domain="text", limit=9) == (new,)


ranked = st.builds(
    lambda n, gt, rank, group, second, changes: make_experience(
        n,
        summary32=f"lesson {n}",
        reward=Reward(gt_score=gt, relative_rank=rank),
        group_id=f"g{group}",
        created_at=f"2026-01-01T00:00:{second:02}{'.5' if second % 2 else ''}Z",
        **changes,
    ),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.5, 0.75]),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([{}, {}, {"domain": "dates"}, {"stamp_signature": "b" * 64}]),
)


@reaches("another domain", "another stamp", "a low reward", "more than the limit")
@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(ranked, max_size=12), max_size=4),
    limit=st.integers(0, 6),
    min_reward=st.sampled_from([0.0, 0.5, 0.9]),
)
def test_fetch_top_picks_what_a_selection_from_the_whole_store_picks(
    batches: list[list[Experience]], limit: int, min_reward: float
) -> None:
    pack = make_pack(retrieval="top", min_reward=min_reward)
    known: dict[str, Experience] = {}
    with tempfile.TemporaryDirectory() as folder, ExperienceStore.open(Path(folder) / "e.jsonl") as store:
        for batch in batches:
            store.append(batch)
            for experience in batch:
                known.setdefault(experience.id, experience)
            found = store.fetch_top(domain="text", limit=limit, stamp=pack.stamp, min_reward=min_reward)
            best = select([*known.values()], pack=pack, domain="text", prompt="", limit=limit)
            assert found == best.picked
        reasons = [why for _, why in best.left_out] if known else []
        for branch, word in (
            ("another domain", "domain"), ("another stamp", "stamp"), ("a low reward", "min_reward"),
            ("more than the limit", "no slot"),
        ):  # fmt: skip
            reached(branch, any(word in why for why in reasons))


def test_with_a_prompt_the_best_are_weighed_by_their_relevance_to_it(tmp_path: Path) -> None:
    about_dates = make_experience(0, summary32="For weekdays use weekday_name.")
    about_words = make_experience(
        1, summary32="For distinct words use unique_items.", reward=Reward(gt_score=0.6, relative_rank=0.6)
    )
    with ExperienceStore.open(tmp_path / "e.jsonl") as store:
        store.append([about_dates, about_words])
        assert store.fetch_top(domain="text", limit=2, prompt="How many distinct words?") == (about_words,)


def test_the_export_has_the_camel_case_keys_of_the_source() -> None:
    (exported,) = export_camel([replace(make_experience(), parents=("a_b",))])
    source = {
        "runId",
        "taskId",
        "promptPackId",
        "epoch",
        "groupId",
        "summary32",
        "reward",
        "toolStats",
        "stampSignature",
        "createdAt",
    }
    assert source <= exported.keys()
    assert exported["reward"] == {"gtScore": 1.0, "relativeRank": 0.8}
    assert exported["toolStats"] == [{"tool": "count_words", "tokens": 5, "latencyMs": 1.0, "costUsd": 0.0}]
    assert exported["parents"] == ["a_b"], "only keys change"
