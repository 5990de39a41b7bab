"""What commands of the loop say, and pass on, of what is rarely there: shared sessions, lessons, weights."""

from argparse import Namespace
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.cli.loop import forget, import_files, loop_roles, open_loop
from pytest_tfgrpo.cli.loop.training import train
from pytest_tfgrpo.core.errors import SettingError, StoreError


@contextmanager
def given(*values: Any) -> Any:
    yield values if len(values) > 1 else values[0]


@pytest.fixture
def forgetting(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what is found of whom to forget; `asked` gets what was asked for."""
    found: dict[str, Any] = {
        "whose": SimpleNamespace(whose="user", ref="u-1", removed={}, shared=0, ids=("t1",)),
        "learned": SimpleNamespace(jobs=(), lessons=(), weights=()),
        "sinks": ([], {}),
        "asked": [],
    }
    config = SimpleNamespace(store="store", jobs_path="jobs")

    def overwrite(bus: object, view: object, **more: Any) -> Any:
        found["asked"].append((more["actor"], more["session"], more["user"]))
        return found["whose"]

    monkeypatch.setattr(forget, "existing_bus", lambda path: given(config, "bus"))
    monkeypatch.setattr(forget, "current_view", lambda config, bus: given("view"))
    monkeypatch.setattr(forget, "open_scrubber", lambda config: None)
    monkeypatch.setattr(forget, "operator_name", lambda: "ada")
    monkeypatch.setattr(forget, "Policies", lambda *_: None)
    monkeypatch.setattr(forget, "open_artifacts", lambda store: None)
    monkeypatch.setattr(forget, "overwrite", overwrite)
    monkeypatch.setattr(forget, "forget_learning", lambda policies, jobs, ids: found["learned"])
    monkeypatch.setattr(forget, "forget_in_sinks", lambda *_: found["sinks"])
    monkeypatch.setattr(forget, "streams_text", lambda removed: "3 events")
    return found


def forgot(**more: Any) -> list[str]:
    arguments = Namespace(**{"session": None, "user": "alice", "actor": None, "config": None, **more})
    return [" ".join(line.split()) for line in forget.forget(arguments)]


def test_forgetting_says_whom_and_by_whom(forgetting: dict[str, Any]) -> None:
    assert forgot() == ["forgot user u-1: 3 events"]
    forgot(actor="eve", user=None, session="chat")
    assert forgetting["asked"] == [("ada", None, "alice"), ("eve", "chat", None)]
    for nobody in ({"user": "  "}, {"user": " ", "session": ""}):
        with pytest.raises(SettingError, match=r"^name the session or user to forget; an empty id is n"):
            forgot(**nobody)
    assert len(forgetting["asked"]) == 2


def test_forgetting_says_what_was_learned_of_it_and_where_rows_are_left(forgetting: dict[str, Any]) -> None:
    forgetting["whose"].shared = 1234
    lesson = SimpleNamespace(lesson="l1", text="Be brief.")
    forgetting["learned"] = SimpleNamespace(
        jobs=("j1", "j2"), lessons=((lesson, ("v2", "v3")),), weights=(("ckpt\n1", ("v4",)),)
    )
    forgetting["sinks"] = (["archive"], {})
    assert " ".join(forgot()) == (
        "forgot user u-1: 3 events shared 1,234 sessions have other users; what names nobody there stays "
        "(see --session) jobs evidence and runs of 2 training jobs are removed lesson l1 of v2, v3 rests on "
        "it: Be brief. weights ckpt 1 of v4 were trained on it archive its rows are removed"
    )
    forgetting["sinks"] = ([], {"warehouse": "no answer", "logs": "held"})
    with pytest.raises(StoreError) as left:
        forgot()
    assert str(left.value).startswith(
        "warehouse still has rows of u-1: no answer\nlogs still has rows of u-1: held\na service removes them"
    )


@pytest.mark.parametrize("made", [True, False])
def test_an_import_says_who_makes_trajectories_of_it(made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(import_files, "opened_door", lambda arguments: given("bus", "scrubber", "rows"))
    monkeypatch.setattr(import_files, "Intake", lambda *parts: parts)
    monkeypatch.setattr(
        import_files,
        "import_files",
        lambda paths, intake, scale: seen.append((paths, scale)) or SimpleNamespace(lines=lambda: ["2 runs"]),
    )
    monkeypatch.setattr(import_files, "load_config", lambda path: None)
    monkeypatch.setattr(import_files, "work_off", lambda bus, config, rows: made)
    lines = list(import_files.import_(Namespace(files=["a", "b"], scale=[("stars", (0, 5))], config=None)))
    assert lines[0] == "2 runs"
    assert ("loop report" in lines[1], "the service that runs" in lines[1]) == (made, not made)
    assert seen == [([Path("a"), Path("b")], {"stars": (0, 5)})]


def test_work_that_another_process_does_is_left_to_it_after_some_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=0.0)
    steps = {"a": [2, 1, 0], "b": [0, 0, 0]}
    behind, closed = [True], list[str]()

    def role(name: str) -> Any:
        return SimpleNamespace(
            step=lambda: steps[name].pop(0) if steps[name] else 0, close=lambda: closed.append(name)
        )

    def rest(seconds: float) -> None:
        clock.now += seconds

    def waiting(bus: object, view: object, name: str) -> Any:
        return SimpleNamespace(
            jobs={"one": SimpleNamespace(behind=0), "two": SimpleNamespace(behind=behind[0])}
        )

    view = SimpleNamespace(catch_up=lambda bus: None)
    monkeypatch.setattr(loop_roles, "current_view", lambda config, bus: given(view))
    monkeypatch.setattr(loop_roles, "open_roles", lambda *_, settle_s: [role("a"), role("b")])
    monkeypatch.setattr(loop_roles, "status_of", waiting)
    monkeypatch.setattr(loop_roles.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(loop_roles.time, "sleep", rest)
    parts: Any = (None, None, None)
    assert loop_roles.work_off(*parts) is False
    assert loop_roles.PATIENCE_S <= clock.now < loop_roles.PATIENCE_S + 1
    assert steps == {"a": [], "b": []}
    assert sorted(closed) == ["a", "b"]
    behind[0] = False
    assert loop_roles.work_off(*parts) is True


@pytest.mark.parametrize(
    ("cut_before", "run_before", "algorithm", "cuts", "rows"),
    [
        (False, None, "tfgrpo", 1, 0),
        (True, None, "tfgrpo", 0, 0),
        (False, "a run", "tfgrpo", 0, 0),
        (False, None, "external", 1, 1),
    ],
)
def test_evidence_is_cut_once_and_has_rows_for_an_external_trainer(
    cut_before: bool, run_before: str | None, algorithm: str, cuts: int, rows: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    seen: list[Any] = []
    file = tmp_path / "evidence.jsonl"
    if cut_before:
        file.touch()
    monkeypatch.setattr(loop_roles, "EXTERNAL", ("external",))
    monkeypatch.setattr(loop_roles, "newest_run", lambda out: run_before)
    monkeypatch.setattr(loop_roles, "request_of", lambda asked: asked)
    monkeypatch.setattr(loop_roles, "cut", lambda *parts, **more: seen.append(("cut", *parts[2:], more)))
    monkeypatch.setattr(loop_roles, "write_training_rows", lambda *parts: seen.append(("rows", *parts)))
    training = SimpleNamespace(domains={"helper": "notes"})
    config: Any = SimpleNamespace(settings=SimpleNamespace(training=training), project_path="project")
    request: Any = {
        "training_config": {"dataset": "the asked", "algorithm": algorithm}, "metadata": {"watermark": 7}
    }  # fmt: skip
    nothing: Any = None
    loop_roles._cut_evidence(nothing, nothing, config, request, file)
    assert [one[0] for one in seen] == ["cut"] * cuts + ["rows"] * rows
    if cuts:
        assert seen[0][1:] == ("the asked", file, {"domains": {"helper": "notes"}, "watermark": 7})
    if rows:
        assert seen[-1][1:] == (file, request, "project")


def test_a_job_is_cancelled_by_the_beginning_of_its_id_alone_where_it_has_not_ended() -> None:
    jobs = [
        SimpleNamespace(id="abc1", ended=False, state="running"),
        SimpleNamespace(id="abd2", ended=True, state="failed"),
        SimpleNamespace(id="e3", ended=False, state="queued"),
    ]
    states = {"abc1": "running", "e3": "queued"}
    store: Any = SimpleNamespace(listed=lambda: jobs, cancel=states.get)
    assert train._cancelled(store, "ABC") == "ending     it runs, and ends soon"
    assert train._cancelled(store, "e") == "cancelled  e3"
    assert train._cancelled(store, "abd2") == "unchanged  abd2 is failed already"
    with pytest.raises(StoreError, match=r"^several jobs have an id that starts with 'ab'; see `tfgrpo loop"):
        train._cancelled(store, "ab")


def test_a_machine_that_knows_no_name_of_its_user_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [OSError("no"), KeyError("uid"), ImportError("pwd")]

    def unknown() -> str:
        raise errors.pop()

    monkeypatch.setattr("getpass.getuser", unknown)
    while errors:
        assert open_loop.operator_name() == "unknown"
    open_loop.warn("a\nb" + "c" * 3000)
    said = capsys.readouterr().err
    assert said.startswith("tfgrpo: a b")
    assert 1990 < len(said) < 2030
