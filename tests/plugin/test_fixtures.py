"""Fixtures of a marked test function that are set up before its agent, which one of them may make."""

import pytest
from support.plugin.fixtures import BOOKING, ENDING, TESTS, log
from support.project import Project, item_names


@pytest.fixture
def booking(project: Project) -> Project:
    (project.root / "pytest.ini").write_text("[pytest]\n")  # no actor: each test has its own
    return project.checker(BOOKING + TESTS)


def test_in_plain_mode_the_agent_of_a_fixture_runs_once_in_its_world(booking: Project) -> None:
    result = booking.run()
    assert sum(result.parseoutcomes().get(key, 0) for key in ("passed", "failed")) == 1
    assert log(booking) == ["up", "asked", "down"]


def test_each_rollout_has_fresh_fixtures_and_lessons_reach_the_agent(booking: Project) -> None:
    result = booking.learn("--tfgrpo-group-size=4", "--tfgrpo-acceptance=off")
    result.assert_outcomes(passed=4 * 4 * 2 + 2 * 4 + 1)
    assert log(booking) == ["up", "asked", "down"] * (4 * 4 * 2 + 2 * 4)
    report = booking.report()
    assert report["library"]["lessons"]
    assert [row["gt_score"]["mean"] for row in report["epochs"]][-1] == 1.0
    assert report["gain"]["difference"] > 0
    assert booking.manifest()["status"] == "complete"


def test_fixtures_named_by_the_mark_are_set_up_before_the_configured_actor(project: Project) -> None:
    project.checker("""
SEEN = []

@pytest.fixture
def world():
    SEEN.append("up")
    yield "world"
    SEEN.append("down")

@pytest.mark.tfgrpo(split="eval", fixtures=["world"], **MARK)
def test_sweep(rollout):
    assert rollout.answer == "up"
    assert SEEN == ["up"]
""").agent("""
def solve(context):
    import test_agent
    return test_agent.SEEN[-1]
""")
    project.write("pytest.ini", "[pytest]\ntfgrpo_actor = python:agent2:solve\npythonpath = .\n")
    project.run().assert_outcomes(passed=1)


def test_the_mark_may_name_the_fixture_that_is_the_agent(project: Project) -> None:
    project.checker("""
@pytest.fixture
def clerk():
    return lambda context: "3"

@pytest.mark.tfgrpo(split="eval", agent="clerk", **MARK)
def test_sweep(rollout_workspace, rollout):
    assert rollout.answer == "3"
    assert rollout_workspace.is_dir()
""")
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.run().assert_outcomes(passed=1)


OWN = (("", "tfgrpo_agent, db"), ("", "rollout_workspace, tfgrpo_agent, db"))
NAMED = (("fixtures=['db'], ", "db"),)


@pytest.mark.parametrize(
    ("tests", "beside"),
    [(OWN, False), (NAMED, False), ((*OWN, *NAMED), True)],
    ids=["own", "named", "beside a scenario"],
)
def test_a_test_need_not_name_the_rollout(
    booking: Project, tests: tuple[tuple[str, str], ...], beside: bool
) -> None:
    booking.checker(
        BOOKING
        + "".join(
            f"""
@pytest.mark.tfgrpo(split="eval", {named}prompt="Reserve the white room for Monday, {n}.")
def test_booking{n}({arguments}):
    assert len(booked(db)) == {"tfgrpo_agent" in arguments:d}
"""
            for n, (named, arguments) in enumerate(tests)
        )
    )
    if beside:
        booking.scenarios(train=0, sweep=1)
    if beside or tests == NAMED:
        booking.ini(actor="python:agent:right")
    booking.run().assert_outcomes(passed=len(tests) + beside)
    booking.learn().assert_outcomes(passed=2 * len(tests) + beside + 1)


def test_other_rollouts_run_beside_and_keep_their_actor(booking: Project) -> None:
    booking.scenarios().ini(actor="python:agent:right")
    booking.learn("--tfgrpo-acceptance=off")
    assert booking.manifest()["status"] == "complete"
    assert set(booking.calls) >= {"suite-eval0", "suite-train1"}


def test_an_async_agent_runs_on_the_loop_of_async_fixtures(project: Project) -> None:
    project.checker("""
import asyncio
import pytest_asyncio

@pytest_asyncio.fixture
async def queue():
    yield asyncio.Queue(), asyncio.get_running_loop()

@pytest.fixture
def tfgrpo_agent(queue):
    async def solve(context):
        assert asyncio.get_running_loop() is queue[1]
        await queue[0].put("3")
        return await asyncio.wait_for(queue[0].get(), 100)
    return solve

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout, tfgrpo_agent):
    assert rollout.answer == "3"
""")
    (project.root / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n"
    )
    project.plugins("asyncio").run().assert_outcomes(passed=1)


def test_an_async_agent_needs_no_async_fixture(project: Project) -> None:
    project.checker("""
@pytest.fixture
def tfgrpo_agent():
    async def solve(context):
        return "3"
    return solve

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout, tfgrpo_agent):
    assert rollout.answer == "3"
""")
    project.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    project.run().assert_outcomes(passed=1)


FAULTS = (
    ("raise RuntimeError('no database')", "fixture", "a fixture failed: no database"),
    ("return 3", "fixture", "the fixture 'tfgrpo_agent' must return a callable agent: 'the value' is 3"),
    ("return lambda context: 1 / 0", "crash", "ZeroDivisionError"),
    ("return lambda context: pytest.skip('not today')", "crash", "not today"),
)
"""What the fixture of an agent does, with code and message."""


def test_whose_fault_it_is_is_said(project: Project) -> None:
    project.checker(
        "".join(
            f"""
class TestIt{n}:
    @pytest.fixture
    def tfgrpo_agent(self):
        {body}

    @pytest.mark.tfgrpo(split="eval", prompt="How many words has {n}?")
    def test_sweep(self, rollout, tfgrpo_agent):
        assert rollout.answer == "3"
"""
            for n, (body, _, _) in enumerate(FAULTS)
        )
    )
    (project.root / "pytest.ini").write_text("[pytest]\n")
    assert project.run("--tfgrpo-out=out").ret == 1
    rollouts = project.events("rollout")
    assert len(rollouts) == len(FAULTS)
    for n, (_, code, said) in enumerate(FAULTS):
        (rollout,) = [r for r in rollouts if f"TestIt{n}" in r["scenario_id"]]
        assert rollout["status"] == ("error" if code == "fixture" else "failed")
        assert rollout["failure"]["code"] == code
        assert said in rollout["failure"]["message"]


def test_a_fixture_that_skips_takes_the_scenario_out(project: Project) -> None:
    project.checker("""
@pytest.fixture
def tfgrpo_agent():
    pytest.skip("no server here")

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout, tfgrpo_agent):
    raise AssertionError
""")
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.run("--tfgrpo-out=out").assert_outcomes(skipped=1)
    assert project.report()["epochs"][0]["gt_score"]["n"] == 0


def test_a_fixture_that_changes_what_others_share_is_refused_beside_others(booking: Project) -> None:
    source = (booking.root / "test_agent.py").read_text()
    head = "def db(tmp_path, monkeypatch):\n    monkeypatch.setenv('DB', 'x')"
    booking.write("test_agent.py", source.replace("def db(tmp_path):", head))
    booking.run("--tfgrpo-out=out")
    assert [rollout["status"] for rollout in booking.events("rollout")] == ["ok"]
    booking.scenarios().ini(actor="python:agent:right", out="out").run()
    errors = [r["failure"]["message"] for r in booking.events("rollout") if r["status"] == "error"]
    assert len(errors) == 1
    assert "change DB, which agents running at the same time would see; select only these tests" in errors[0]


def test_a_test_of_another_kind_may_change_its_environment(booking: Project) -> None:
    booking.write("test_plain.py", "def test_env(monkeypatch):\n    monkeypatch.setenv('A', 'b')\n")
    booking.scenarios().ini(actor="python:agent:right").run("test_plain.py", "suite.scenario.json", "-v")
    result = booking.run("-k", "test_env or suite")
    assert result.ret == 0


def test_a_budget_that_is_used_up_ends_a_run_with_fixtures(project: Project) -> None:
    (project.root / "pytest.ini").write_text("[pytest]\n")
    result = project.checker(ENDING.format(body="")).run("--tfgrpo-budget-tokens=10", "--tfgrpo-out=out")
    assert result.parseoutcomes()["passed"] == 1
    assert project.manifest()["reason"] == "budget_tokens of 10 is used up (10 spent)"


def test_a_budget_that_others_use_up_ends_a_run_with_fixtures(project: Project) -> None:
    project.checker(ENDING.format(body="")).scenarios()
    project.agent("""
def solve(context):
    return {"answer": "3", "frames": [{"kind": "tool", "name": "t", "output": "", "tokens": 10}]}
""")
    project.write("pytest.ini", "[pytest]\ntfgrpo_actor = python:agent2:solve\npythonpath = .\n")
    project.run("--tfgrpo-budget-tokens=10", "--tfgrpo-concurrency=1", "--tfgrpo-out=out")
    assert project.manifest()["status"] == "incomplete"


def test_an_item_that_runs_again_does_not_judge_fixtures_that_no_agent_has_seen(project: Project) -> None:
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.pytester.makeconftest("""
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if any(report.failed for report in runtestprotocol(item, nextitem=nextitem, log=False)):
        item._initrequest()
        runtestprotocol(item, nextitem=nextitem)
        return True
""")
    project.checker("""
@pytest.fixture
def harm(): return []

@pytest.fixture
def tfgrpo_agent(harm): return lambda context: harm.append("files gone") or "done"

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_no_harm(rollout, tfgrpo_agent, harm):
    assert harm == []
""").run().assert_outcomes(failed=1)


def test_what_an_agent_did_to_fixtures_cannot_be_replayed(booking: Project) -> None:
    booking.run("--tfgrpo-record=answers.jsonl")
    asked = log(booking).count("asked")
    result = booking.run("--tfgrpo-actor=replay:answers.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "not the side effects of its agent, the fixture 'tfgrpo_agent'" in "\n".join(result.errlines)
    assert log(booking).count("asked") == asked


def test_a_mark_that_names_no_fixtures_is_misuse(project: Project) -> None:
    project.checker("""
@pytest.mark.tfgrpo(split="eval", fixtures='db', **MARK)
def test_sweep(rollout): pass
""")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "fixtures must be a list of names" in "\n".join(result.errlines)


def test_items_are_those_of_any_marked_function(booking: Project) -> None:
    assert item_names(booking.run("-v")) == ["test_agent.py::test_booking[tfgrpo-eval-r0]"]


def test_a_server_of_the_session_that_dies_is_no_failure_of_agents_and_the_run_goes_on(
    project: Project,
) -> None:
    project.write("pytest.ini", "[pytest]\n")
    project.checker("""
import socket
import threading

@pytest.fixture(scope="session")
def server():
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found

@pytest.fixture
def tfgrpo_agent(server, n):
    place = server.getsockname() if server.fileno() > 0 else DEAD[0]
    DEAD.append(place)
    def solve(context):
        if n == 1:
            server.close()
        socket.create_connection(place, timeout=100).close()
        return "3"
    return solve

DEAD = []

@pytest.mark.tfgrpo(split="eval", prompt="How many words has letter {n}?")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_sweep(rollout, tfgrpo_agent, n):
    assert rollout.answer == "3"
""").run("--tfgrpo-out=out").assert_outcomes(passed=1, failed=2)
    found = [(r["status"], (r["failure"] or {}).get("code")) for r in project.events("rollout")]
    assert found == [("ok", None), ("error", "network"), ("error", "network")]
    assert project.manifest()["status"] == "complete"


@pytest.mark.parametrize(
    ("where", "ends", "said"),
    [
        (
            "fixture",
            False,
            "the fixture 'tfgrpo_agent' leaves the thread 'worker' running after its tear-down",
        ),
        ("agent", False, "an agent of a fixture leaves the thread 'worker' running after its tear-down"),
        ("fixture", True, ""),
        ("session", True, ""),
        ("session", False, "the fixture 'server' leaves the thread 'worker' running after its tear-down"),
    ],
)
def test_a_thread_that_a_fixture_leaves_is_said_once_by_name(
    project: Project, where: str, ends: bool, said: str
) -> None:
    project.write("pytest.ini", "[pytest]\n")
    project.checker(f"""
import threading

OVER = threading.Event()

def start():
    threading.Thread(target=OVER.wait, args=(20,), name="worker", daemon=True).start()

@pytest.fixture(scope="session")
def server():
    {"start()" if where == "session" else "pass"}
    yield
    {"OVER.set()" if ends and where == "session" else "pass"}

@pytest.fixture
def tfgrpo_agent(server):
    {"start()" if where == "fixture" else "pass"}
    def solve(context):
        {"start()" if where == "agent" else "pass"}
        return "3"
    yield solve
    {"OVER.set()" if ends and where == "fixture" else "pass"}

@pytest.mark.tfgrpo(split="eval", prompt="How many words has letter {{n}}?")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_sweep(rollout, tfgrpo_agent, n):
    assert rollout.answer == "3"
""").run("--tfgrpo-out=out").assert_outcomes(passed=3)
    warnings = [text for text in project.report()["warnings"] if "thread" in text]
    assert len(warnings) == bool(said)
    assert not said or said in warnings[0]


def test_an_agent_fixture_that_returns_no_callable_is_told_in_a_line(project: Project) -> None:
    result = (
        project.write("pytest.ini", "[pytest]\n")
        .checker("""
@pytest.fixture
def tfgrpo_agent():
    return "gpt-x"

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(tfgrpo_agent): pass
""")
        .run()
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the fixture 'tfgrpo_agent' must return a callable agent: *is 'gpt-x'*"])
    result.stdout.no_fnmatch_line("*checkers.py*")


AWAY = """
from pytest_tfgrpo import ProviderError

TRIED = []


@pytest.fixture
def tfgrpo_agent(db, tmp_path, n, NEEDED):
    assert booked(db) == []
    def solve(context):
        db.execute("INSERT INTO bookings VALUES ('monday')")
        (context.workspace / "file").touch(exist_ok=False)
        TRIED.append(n)
        if n in AWAY and (n == 2 or TRIED.count(n) == 1):
            raise ProviderError("503 from the provider", "server")
        return {"answer": "booked", "frames": [{"kind": "tool", "name": "t", "output": "", "tokens": 2}]}
    yield solve


@pytest.mark.tfgrpo(split="eval", prompt="Book the room for day {n}.")
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_booking(rollout, tfgrpo_agent, db, n):
    assert booked(db) == ["monday"]
    assert TRIED.count(n) == (2 if n in AWAY else 1)
"""


@pytest.mark.parametrize("beside", [False, True])
def test_an_agent_whose_provider_was_away_is_asked_once_more_with_fresh_fixtures(
    booking: Project, beside: bool
) -> None:
    world = BOOKING[: BOOKING.index("@pytest.fixture\ndef tfgrpo_agent")]
    world += "def booked(db):\n    return [day for (day,) in db.execute('SELECT day FROM bookings')]\n"
    again = AWAY.replace(", NEEDED", "").replace("n in AWAY", "n in (1, 2)")
    booking.checker(world + again)
    if beside:
        booking.scenarios().ini(actor="python:agent:right", out="out")
    booking.run("--tfgrpo-out=out").assert_outcomes(passed=3 + 2 * beside, failed=1)
    own = [rollout for rollout in booking.events("rollout") if "test_booking" in rollout["rollout_id"]]
    assert [r["status"] for r in own] == ["ok", "ok", "error", "ok"]
    assert own[2]["failure"]["code"] == "server"
    assert [word for word in log(booking) if word in ("up", "down")] == ["up", "down"] * 6


def test_fixtures_that_break_when_they_are_set_up_again_are_an_error(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\n").checker("""
from pytest_tfgrpo import ProviderError

MADE = []

@pytest.fixture
def tfgrpo_agent():
    MADE.append("x")
    if len(MADE) == 2:
        raise RuntimeError("no second database")
    def solve(context):
        raise ProviderError("503 from the provider", "server")
    return solve

@pytest.mark.tfgrpo(split="eval", prompt="How many words has letter {n}?")
@pytest.mark.parametrize("n", [0, 1])
def test_sweep(rollout, tfgrpo_agent, n): pass
""").run("--tfgrpo-out=out").assert_outcomes(errors=1, failed=1)
    first, second = (rollout["failure"] for rollout in project.events("rollout"))
    assert first == {"code": "fixture", "message": "a fixture failed: no second database"}
    assert second["code"] == "server"


def test_async_fixtures_are_fresh_for_an_agent_that_is_asked_again(project: Project) -> None:
    project.checker("""
import asyncio
import pytest_asyncio
from pytest_tfgrpo import ProviderError

TRIED = []

@pytest_asyncio.fixture
async def queue():
    yield asyncio.Queue()

@pytest.fixture
def tfgrpo_agent(queue):
    async def solve(context):
        assert queue.empty()
        await queue.put("3")
        TRIED.append("x")
        if len(TRIED) == 1:
            raise ProviderError("503 from the provider", "server")
        return await asyncio.wait_for(queue.get(), 100)
    return solve

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout, tfgrpo_agent, queue):
    assert rollout.answer == "3"
    assert queue.empty()
    assert len(TRIED) == 2
""")
    project.write(
        "pytest.ini", "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n"
    )
    project.plugins("asyncio").run().assert_outcomes(passed=1)


INTERRUPTED = """
@pytest.fixture
def tfgrpo_agent(tmp_path):
    def solve(context):
        if len(list(tmp_path.parent.iterdir())) > 1:  # another rollout had a folder before
            raise {ends}
        return "3"
    return solve

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout, tfgrpo_agent):
    pass
"""


@pytest.mark.parametrize("ends", ["KeyboardInterrupt", "pytest.exit.Exception('enough')"])
def test_a_run_that_is_interrupted_while_its_agent_works_is_resumed(project: Project, ends: str) -> None:
    """The folder of tmp_path is taken away at the end, by what its fixture knows of the set-up."""
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.checker(INTERRUPTED.format(ends=ends))
    args = ("-p", "no:cacheprovider", "--tfgrpo", "--tfgrpo-eval-rollouts=2")
    result = project.pytester.runpytest_inprocess(*args, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["the run is cancelled: interrupted*", "*finish it with --tfgrpo-resume*"])
    result.stdout.no_fnmatch_line("*StashKey*")
