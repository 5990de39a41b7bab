"""The log: one line of JSON for each event, whose fields are those of the docs, and which names nobody."""

import io
import json
import re
from pathlib import Path

import pytest
from support import ROOT
from support.loop_events import judged, trajectory
from support.loop_sinks import deployed, row, training_request, training_status

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.sinks.log_lines import LogLines
from pytest_tfgrpo.production.sinks.rows import SinkRow

USER = "u-" + "a" * 32


def rows() -> list[SinkRow]:
    metadata: Json = {"model": "m-1", "total_tokens": 50, "total_cost_usd": 0.25, "revision": 2}
    told = trajectory("a", user=USER, text="a question of a user", metadata=metadata, session="chat-99")
    return [
        row("RL_TRAJECTORIES", told),
        row("RL_REWARDS", judged("a", "a", style=0.5)),
        row("RL_TRAINING", training_request()),
        row("RL_TRAINING", training_status()),
        row("RL_DEPLOYMENTS", deployed()),
    ]


def read(path: Path) -> list[dict[str, Json]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_the_fields_of_each_kind_are_those_of_the_docs(tmp_path: Path) -> None:
    LogLines(tmp_path / "loop.log").write(rows(), again=False)
    text = (ROOT / "docs" / "loop-data.md").read_text()
    documented = {
        kind: re.findall(r"`([a-z_]+)`", fields)
        for kind, fields in re.findall(
            r"^\| `(collection|reward|training|deployment)` \| (.*) \|$", text, re.M
        )
    }
    found = read(tmp_path / "loop.log")
    assert {line["kind"] for line in found} == set(documented)
    for line in found:
        assert list(line) == ["time", "kind", "event_id", *documented[line["kind"]]]


def test_a_line_has_no_text_and_names_no_user_and_no_session(tmp_path: Path) -> None:
    LogLines(tmp_path / "loop.log").write(rows(), again=False)
    text = (tmp_path / "loop.log").read_text()
    for private in ("question", USER, "chat-", "secret", "a long text"):
        assert private not in text
    collection, reward, requested, status, deployment = read(tmp_path / "loop.log")
    assert (collection["model"], collection["tokens"], collection["revision"]) == ("m-1", 50.0, 2)
    assert (reward["total_reward"], reward["components"]) == (0.5, {"style": 0.5})
    assert (requested["status"], requested["trigger_reason"]) == ("requested", "manual")
    assert (status["status"], status["error_code"], status["cost_usd"]) == ("failed", "DATA", 1.5)
    assert (deployment["state"], deployment["traffic_percentage"]) == ("canary", 10.0)


@pytest.mark.parametrize("odd", [None, 7, [], {"model": {"a": 1}, "revision": -1, "total_tokens": True}])
def test_what_is_not_of_its_type_is_left_out(tmp_path: Path, odd: Json) -> None:
    event = trajectory("a")
    data = {**json.loads(event.data), "metadata": odd, "task_context": odd, "agent_id": 5, "turns": "many"}
    found = row("RL_TRAJECTORIES", type(event)(
        id=event.id, subject=event.subject, time=event.time, data=json.dumps(data).encode()
    ))  # fmt: skip
    LogLines(tmp_path / "loop.log").write([found], again=False)
    (line,) = read(tmp_path / "loop.log")
    assert (line["model"], line["agent"], line["tokens"], line["turns"], line["revision"]) == (
        "",
        "",
        None,
        0,
        1,
    )


def test_what_comes_again_is_there_once_and_a_torn_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "loop.log"
    first, second, *_ = rows()
    LogLines(path).write([first, second], again=False)
    path.write_bytes(path.read_bytes()[:-9])
    LogLines(path).write([first], again=True)
    LogLines(path).write([first, second, row("RL_DEPLOYMENTS", deployed())], again=True)
    *whole, last = path.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in (whole[0], last)] == ["collection", "deployment"]
    assert path.read_text().count(first.id) == 1


def test_a_line_that_was_cut_after_its_id_comes_again_whole(tmp_path: Path) -> None:
    path = tmp_path / "loop.log"
    first, second, *_ = rows()
    LogLines(path).write([first, second], again=False)
    path.write_bytes(path.read_bytes()[:-9])
    LogLines(path).write([first, second], again=True)
    *_, last = path.read_text().splitlines()
    assert json.loads(last)["event_id"] == second.id
    assert path.read_text().count(first.id) == 1


def test_a_file_that_was_renamed_goes_on_under_its_name(tmp_path: Path) -> None:
    log = LogLines(tmp_path / "loop.log")
    log.write(rows()[:1], again=False)
    (tmp_path / "loop.log").rename(tmp_path / "loop.log.1")
    log.write(rows()[1:2], again=False)
    assert [line["kind"] for line in read(tmp_path / "loop.log")] == ["reward"]


def test_a_stream_gets_the_lines_and_a_missing_folder_is_named(tmp_path: Path) -> None:
    stream = io.BytesIO()
    LogLines(stream).write(rows()[:2], again=False)
    assert [json.loads(line)["kind"] for line in stream.getvalue().splitlines()] == ["collection", "reward"]
    with pytest.raises(StoreError, match=r"missing/loop\.log"):
        LogLines(tmp_path / "missing" / "loop.log").write(rows(), again=False)


def test_a_stream_with_a_buffer_has_the_lines_at_once_and_one_that_fails_is_an_error(tmp_path: Path) -> None:
    class Gone(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError(32, "Broken pipe")

    with (tmp_path / "out").open("wb") as stream:
        LogLines(stream).write(rows()[:2], again=False)
        assert [line["kind"] for line in read(tmp_path / "out")] == ["collection", "reward"]
    with pytest.raises(StoreError, match=r"logs .*Broken pipe"):
        LogLines(Gone()).write(rows()[:1], again=False)


def test_a_line_that_another_process_left_torn_ends_before_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "loop.log"
    path.write_bytes(b'{"time":"2025-')
    LogLines(path).write(rows()[:1], again=False)
    LogLines(path).write(rows()[1:2], again=False)
    torn, *whole = path.read_text().splitlines()
    assert torn == '{"time":"2025-'
    assert [json.loads(line)["kind"] for line in whole] == ["collection", "reward"]
