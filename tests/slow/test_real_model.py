"""The benchmark with a real model, on a scripted one: its table, what it keeps of answers, and its replay."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import ROOT, benchmark

TOPICS = ("lamp", "chair", "refund", "parcel", "window", "heater", "badge", "printer", "laptop", "desk")
SPLITS = ("train",) * 2 + ("dev",) * 2 + ("eval",) * 4
WHO = ("Ana", "Otto", "Mia", "Karl", "Ines", "Paul", "Rosa", "Emil")
RECORDINGS = ROOT / "benchmarks" / "recordings"
MODEL = {"server": "scripted", "model": "scripted"}


class Scripted:
    """A model that answers rightly where it reads the rule of a topic, and else with its own queue."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, url: str, raw: bytes) -> tuple[int, bytes]:
        """Answer a request as a server does."""
        self.asked.append(raw.decode())
        text = " ".join(message["content"] for message in json.loads(raw)["messages"])
        topic = next(topic for topic in TOPICS if f"about a {topic}," in text)
        answer = "north" if f"A {topic} goes north" in text else "south"
        choice = {"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 1}
        return 200, json.dumps({"choices": [choice], "usage": usage}).encode()


def suite_of(suites: ModuleType) -> Any:
    """Return a suite whose answers nobody can know without its rules."""
    scenarios = [
        {
            "id": f"{topic}-{who}",
            "domain": f"tickets-{n % 2}",
            "family": topic,
            "split": split,
            "prompt": f"{who} writes about a {topic}, ticket {10 * n + m}. North or south?",
            "checks": [{"kind": "exact", "value": "north"}],
        }
        for n, topic in enumerate(TOPICS)
        for m, (who, split) in enumerate(zip(WHO, SPLITS, strict=True))
    ]
    rules = [(f"tickets-{n % 2}", f"A {topic} goes north.") for n, topic in enumerate(TOPICS)]
    return suites.Suite(name="convention", scenarios=scenarios, hand_written=rules, max_tokens=8)


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the benchmark with a suite of known effect."""
    module = benchmark("real_model")
    monkeypatch.setitem(module.SUITES, "convention", lambda: suite_of(benchmark("real_suites")))
    return module


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Return a model that stands for the server."""
    model = Scripted()
    monkeypatch.setattr(benchmark("real_server"), "_post", model)
    return model


def measured(real: ModuleType, out: Path, capsys: pytest.CaptureFixture[str], seeds: str = "0") -> str:
    """Return the table of a run against the scripted model."""
    where = ["--out", str(out), "--base-url", "http://nowhere.invalid/v1", "--model", "scripted"]
    real.main([*where, "--suite", "convention", "--seeds", seeds])
    return capsys.readouterr().out


def rows_of(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the cells of each arm beside the task by its name."""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "beside":
            yield cells[1], cells[2:]


def test_the_table_shows_the_effect_that_was_planted_and_a_replay_prints_it_again(
    real: ModuleType, scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = measured(real, tmp_path, capsys, "0,1")
    rows = dict(rows_of(table))
    assert rows["none"][0] == "0.000"
    assert rows["hand-written"][:2] == ["1.000", "+1.000"]
    assert rows["placebo of hand-written"][:2] == ["0.000", "+0.000"]
    assert rows["default"][1] == "+0.000"
    assert "Lessons by hand move this model by +1.000" in table
    assert "keeps 0% of that (less than half)" in table
    assert len(scripted.asked) == len(set(scripted.asked))  # arms share what they have in common
    asked = len(scripted.asked)
    real.main(["--replay", str(tmp_path / "convention" / "recording.json.xz")])
    assert capsys.readouterr().out == table
    assert len(scripted.asked) == asked


def test_a_command_that_was_killed_asks_only_what_it_does_not_know(
    real: ModuleType, scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = measured(real, tmp_path, capsys)
    asked, kept = len(scripted.asked), tmp_path / "answers.jsonl"
    lines = kept.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + asked
    kept.write_bytes(b"".join(lines[:-20]) + lines[-20][:30])  # as a kill leaves it
    assert measured(real, tmp_path, capsys) == table
    assert len(scripted.asked) == asked + 20
    assert measured(real, tmp_path, capsys) == table
    assert len(scripted.asked) == asked + 20


def test_answers_of_another_model_are_refused(
    real: ModuleType, scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps({**MODEL, "model": "other"}) + "\n")
    with pytest.raises(SystemExit, match=r"other.*give another --out"):
        measured(real, tmp_path, capsys)
    assert not scripted.asked


def test_a_recording_that_lacks_an_answer_says_so_and_one_of_another_suite_too(
    real: ModuleType,
    scripted: Scripted,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(real, tmp_path, capsys)
    file = tmp_path / "convention" / "recording.json.xz"
    recording = real.read_recording(file)
    recording["answers"].popitem()
    lacking = tmp_path / "lacking.json.xz"
    real.write_recording(lacking, recording)
    with pytest.raises(
        SystemExit, match=r"lacking.json.xz has no answer to 1 of the requests.*--suite convention"
    ):
        real.main(["--replay", str(lacking)])
    recording["pins"]["suite"] = "sha256:0"
    real.write_recording(lacking, recording)
    with pytest.raises(SystemExit, match="has changed since"):
        real.main(["--replay", str(lacking)])


@pytest.mark.parametrize("file", sorted(RECORDINGS.glob("*.json.xz")), ids=lambda file: file.name)
def test_a_recording_of_a_real_model_still_prints_its_table(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark("real_model").main(["--replay", str(file)])
    assert capsys.readouterr().out == file.with_name(file.name.replace(".json.xz", ".md")).read_text()
