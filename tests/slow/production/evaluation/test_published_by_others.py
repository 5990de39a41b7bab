"""What a client of NATS that knows nothing of the loop publishes is checked."""

import asyncio
import json
from contextlib import closing
from importlib import import_module
from pathlib import Path

from support import ROOT
from support.buses import NatsPlace

from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import LoopView

APPENDIX = ROOT / "tests" / "golden" / "agent-rl" / "appendix-training-request.json"


async def publish(url: str, *subjects: str) -> None:
    """Publish the training request of the source's appendix."""
    client = await import_module("nats").connect(url)
    data = json.dumps(json.loads(APPENDIX.read_text())["event"]["data"]).encode()
    for subject in subjects:
        await client.jetstream().publish(subject, data)
    await client.close()


def test_a_training_request_of_another_client_is_refused(on_nats: NatsPlace, tmp_path: Path) -> None:
    bus = on_nats.open()
    asyncio.run(publish(on_nats.server.url, "agent.rl.training.request.v1", "agent.rl.training.cancel.v1"))
    with closing(LoopView(tmp_path / "view.db")) as view:
        evaluator = Evaluator(bus, view, "one", settle_s=0.0)
        while evaluator.step():
            pass
        assert queries.stored(view)["RL_TRAINING"] == 0
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert [(letter.subject.split(".")[3], letter.code, letter.pointer) for letter in letters] == [
        ("request", "schema", "/data/training_job_id"),
        ("cancel", "unknown_subject", "/subject"),
    ]
