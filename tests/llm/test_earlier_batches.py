"""Batches that a process left to the server: collected by the next one, or cancelled."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import fake_model
from support.batched_clients import Batched, batched, texts
from support.fake_batches import FakeBatches
from support.fake_model import Answer, FakeModel, Reply, echo
from support.model_clients import KEY, request

from pytest_tfgrpo.core.errors import JournalError, ModelError
from pytest_tfgrpo.llm.batch.ledger import BatchLedger
from pytest_tfgrpo.llm.endpoints import Batching
from pytest_tfgrpo.llm.limits.pace import Pace

pytestmark = pytest.mark.asyncio


async def test_what_nobody_can_collect_is_cancelled_at_the_server(tmp_path: Path) -> None:
    for notes in (None, tmp_path / "batches.jsonl"):
        fake, options = FakeBatches(looks=10**9), {"poll_s": 0.01}
        async with batched(fake, notes=notes, options=options, pace=Pace()) as client:
            waiting = asyncio.ensure_future(client.all(2))
            while not client.fake.seen["GET /batches/*"]:
                await asyncio.sleep(0.005)
            waiting.cancel()
            await asyncio.wait([waiting])
            warnings = client.model.warnings
        assert client.fake.batches["batch_0"]["status"] == ("in_progress" if notes else "cancelled")
        assert [*map(str, warnings)] == (
            [
                "openai:priced@fake: batch batch_0 of 2 calls goes on at the server, which bills it; "
                "a resumed run collects it"
            ]
            if notes
            else []
        )


@asynccontextmanager
async def interrupted(
    notes: Path, fake: FakeBatches, count: int, route: str, answer: Answer = echo, **fields: Any
) -> AsyncIterator[Batched]:
    """Connect a client with a server where an earlier one was cut off once it had made such a request."""
    with FakeModel(answer, keys=[KEY], batches=fake) as server:
        for last in (False, True):
            client = Batched(server, batch=Batching(gather_s=0.02, poll_s=0.01), pace=Pace(), **fields)
            client.fake = fake
            async with client:
                client.models.keep_batches(notes)
                if last:
                    yield client
                    continue
                waiting = asyncio.ensure_future(client.all(count))
                while not fake.seen[route]:
                    await asyncio.sleep(0.001)
                waiting.cancel()
                await asyncio.wait([waiting])


async def test_a_batch_of_an_interrupted_process_is_collected(tmp_path: Path) -> None:
    fake = FakeBatches(looks=10**9)
    async with interrupted(tmp_path / "b.jsonl", fake, 6, "GET /batches/*") as client:
        fake.end()
        assert texts(await client.all(6)) == [f"call {n}" for n in range(6)]
        assert texts(await client.all(6)) == [f"call {n}" for n in range(6)], "asked a second time"
        assert [len(batch["keys"]) for batch in fake.batches.values()] == [6, 6]
        assert set(fake.asked.values()) == {1}


async def test_a_batch_is_found_by_its_tag_where_its_id_was_not_noted(tmp_path: Path) -> None:
    notes, fake = tmp_path / "b.jsonl", FakeBatches(looks=10**9)
    async with interrupted(notes, fake, 3, "GET /batches/*") as client:
        whole = notes.read_bytes().splitlines(keepends=True)
        assert [json.loads(line)["event"] for line in whole] == ["submit", "submitted"]
        notes.write_bytes(whole[0] + whole[1][:20])
        client.models.keep_batches(notes)
        fake.end()
        assert texts(await client.all(4)) == [f"call {n}" for n in range(4)]
        assert [len(batch["keys"]) for batch in fake.batches.values()] == [3, 1]
    events = [json.loads(line)["event"] for line in notes.read_bytes().splitlines()]
    assert events == ["submit", "submit", "submitted"], "what was torn is gone"


@pytest.mark.parametrize("end", ["failed", "cancelled", "never"])
async def test_what_an_earlier_batch_has_no_answer_to_is_submitted(tmp_path: Path, end: str) -> None:
    fake = FakeBatches(looks=10**9, ends=[] if end == "never" else [end])
    async with interrupted(tmp_path / "b.jsonl", fake, 4, "GET /batches/*") as client:
        if end == "never":
            del fake.batches["batch_0"]
            fake.asked.clear()
        fake.end()
        assert texts(await client.all(4)) == [f"call {n}" for n in range(4)]
        assert set(fake.asked.values()) == {1}


async def test_an_earlier_batch_is_still_there_after_the_server_was_away(tmp_path: Path) -> None:
    fake = FakeBatches(looks=10**9)
    async with interrupted(tmp_path / "b.jsonl", fake, 4, "GET /batches/*") as client:
        fake.end()
        client.server._keys = ["another"]
        assert all(isinstance(one, ModelError) for one in await client.all(4))
        client.model._retries.broken = None
        client.server._keys = [KEY]
        assert texts(await client.all(4)) == [f"call {n}" for n in range(4)]
        assert len(fake.batches) == 1


async def test_equal_calls_of_different_rollouts_keep_their_own_answers(tmp_path: Path) -> None:
    fake, served = FakeBatches(looks=10**9), iter(range(100))
    notes = tmp_path / "b.jsonl"
    with FakeModel(lambda *_: f"answer {next(served)}", keys=[KEY], batches=fake) as server:
        for last in (False, True):
            batching = Batching(gather_s=0.02, poll_s=0.01)
            client = Batched(server, batch=batching, seed=False, pace=Pace())
            async with client:
                client.models.keep_batches(notes)
                calls = (client.complete(request("same", seed=n)) for n in range(3) if n or not last)
                waiting = asyncio.gather(*calls)
                while not fake.seen["GET /batches/*"]:
                    await asyncio.sleep(0.001)
                if last:
                    assert [one.text for one in await waiting] == ["answer 1", "answer 2"]
                waiting.cancel()
                await asyncio.wait([waiting])
            fake.end()


@pytest.mark.parametrize("line", [b"{}", b'{"event":"submitted","batch":"t","id":"b"}', b"no JSON"])
async def test_a_file_of_batches_that_is_damaged_is_named(tmp_path: Path, line: bytes) -> None:
    notes = tmp_path / "b.jsonl"
    notes.write_bytes(line + b"\n")
    async with batched() as client:
        with pytest.raises(JournalError, match=r"b\.jsonl:1: not a line of a file of batches"):
            client.models.keep_batches(notes)


async def test_a_call_that_failed_in_passing_is_made_again_after_an_interruption(tmp_path: Path) -> None:
    fake, failing = FakeBatches(looks=10**9), iter([True])

    def answer(body: Mapping[str, Any], attempt: int) -> Reply | str:
        return fake_model.refused(500) if next(failing, False) else "well"

    async with interrupted(tmp_path / "b.jsonl", fake, 3, "GET /batches/*", answer, retries=0) as client:
        fake.end()
        assert texts(await client.all(3)) == ["well"] * 3
        assert [len(batch["keys"]) for batch in fake.batches.values()] == [3, 1]


async def test_of_two_batches_of_one_call_the_last_one_is_collected(tmp_path: Path) -> None:
    path = tmp_path / "batches.jsonl"
    ledger = BatchLedger()
    ledger.open(path)
    for tag in ("first", "second"):
        ledger.submit(tag, "m", ["key"])
        ledger.submitted(tag, f"batch-{tag}")
    again = BatchLedger()
    again.open(path)
    found = again.find("m", "key")
    assert found is not None
    assert (found.tag, found.id) == ("second", "batch-second")


async def test_batches_of_several_models_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "run" / "batches.jsonl"
    ledger = BatchLedger()
    ledger.open(path)
    for tag, model, key in (("t1", "m", "a"), ("t2", "n", "a"), ("t3", "m", "b")):
        ledger.submit(tag, model, [key])
    again = BatchLedger()
    again.open(path)
    found = {(model, key): again.find(model, key) for model in ("m", "n", "o") for key in ("a", "b")}
    tags = {call: one.tag for call, one in found.items() if one is not None}
    assert tags == {("m", "a"): "t1", ("n", "a"): "t2", ("m", "b"): "t3"}
