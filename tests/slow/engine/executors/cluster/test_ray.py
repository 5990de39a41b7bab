"""The executor ``ray`` on a real cluster: nodes that join and die, agents that end their process, errors."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from support import ROOT
from support.executors import alive, job_of, rollouts, scenario, wait_until
from support.jobs import run_job
from support.ray_nodes import Nodes, open_cluster

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Attachment
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.engine.executors.cluster import worker_link, workers
from pytest_tfgrpo.engine.executors.registry import require_executor
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.llm.limits import patience

MIB = 2**20


def in_thread(job: Any) -> tuple[threading.Thread, list[tuple[Run, list[object]]]]:
    """Run a job beside the test."""
    found: list[tuple[Run, list[object]]] = []
    thread = threading.Thread(target=lambda: found.append(run_job(job)))
    thread.start()
    return thread, found


def pids(folder: Path, what: str) -> set[str]:
    return {path.name.rpartition("-")[2] for path in folder.glob(f"{what}-*")}


def test_a_killed_node_loses_nothing_and_no_finished_rollout_is_paid_twice(
    cluster: Nodes, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    told.mkdir()
    names = [f"s{n}" for n in range(24)]
    job = job_of(
        "takes_its_time",
        cluster.executor,
        tmp_path,
        scenarios=[scenario(name, str(told)) for name in names],
        baseline_sweep="off",
        concurrency=8,
        group_size=4,
        eval_rollouts=4,
    )
    second = cluster.add()
    thread, found = in_thread(job)
    wait_until(lambda: len(pids(told, "done")) == 2 and len(list(told.glob("done-*"))) > 30)
    cluster.kill(second)
    thread.join()
    run, seen = found[0]
    assert run.status == "complete"
    assert Counter(r.status for r in rollouts(run)) == {"ok": 96}
    ended = Counter(tuple(path.name.split("-")[1:3]) for path in told.glob("done-*"))
    assert len(ended) == 96
    (warning,) = [text for text in run.warnings if "lost_worker" in text]
    lost = int(warning.split()[0])
    assert 1 <= lost <= 8
    assert len(list(told.glob("begun-*"))) <= 96 + lost
    assert len(list(told.glob("done-*"))) <= 96 + lost  # an answer may be on its way when its node dies
    assert [n.text for n in seen if isinstance(n, Notice) and n.text.startswith("ray: 2 nodes (")]


def test_a_node_that_joins_is_used(cluster: Nodes, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    job = job_of(
        "takes_its_time",
        cluster.executor,
        tmp_path,
        scenarios=[scenario(f"s{n}", str(told)) for n in range(60)],
        baseline_sweep="off",
        eval_rollouts=1,
    )
    thread, found = in_thread(job)
    wait_until(lambda: pids(told, "done"))
    second = cluster.add()
    thread.join()
    cluster.remove(second)
    assert found[0][0].status == "complete"
    assert len(pids(told, "done")) == 2


def test_a_slow_node_gets_less_than_a_fast_one(cluster: Nodes, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    job = job_of(
        "slow_on_one_node",
        cluster.executor,
        tmp_path,
        scenarios=[scenario(f"s{n}", str(told)) for n in range(40)],
        baseline_sweep="off",
        concurrency=4,
        eval_rollouts=1,
    )
    second = cluster.add()
    try:
        require_executor(job)  # which starts a worker on each node
        run, _ = run_job(job)
    finally:
        cluster.remove(second)
    made = Counter(r.answer for r in rollouts(run))
    slow = (told / "slow").read_text()
    assert len(made) == 2
    assert made.total() == 40
    assert 1 <= made[slow] <= 10


def test_what_is_in_flight_on_a_node_that_hangs_is_asked_again_elsewhere(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PING_S", 0.1)
    monkeypatch.setattr(worker_link, "HUNG_S", 3.0)
    told = tmp_path / "told"
    told.mkdir()
    job = job_of(
        "takes_its_time",
        cluster.executor,
        tmp_path,
        scenarios=[scenario(f"s{n}", str(told)) for n in range(96)],
        baseline_sweep="off",
        concurrency=4,
        eval_rollouts=1,
    )
    second = cluster.add()

    def frozen_at_work() -> bool:
        cluster.freeze(second)
        for pid in cluster.processes(second):
            if len(list(told.glob(f"begun-*-{pid}"))) > len(list(told.glob(f"done-*-{pid}"))):
                return True
        cluster.thaw(second)
        return False

    try:
        thread, found = in_thread(job)
        wait_until(frozen_at_work)
        thread.join()
    finally:
        cluster.kill(second)
    assert Counter(r.status for r in rollouts(found[0][0])) == {"ok": 96}
    (warning,) = [text for text in found[0][0].warnings if "lost_worker" in text]
    assert 96 < len(list(told.glob("begun-*"))) <= 96 + int(warning.split()[0])  # one may not have begun


def test_an_agent_that_ends_its_process_fails_alone(cluster: Nodes, tmp_path: Path) -> None:
    scenarios = [scenario(name, name) for name in ("fine", "exit", "good", "well")]
    job = job_of(
        "dies_beside_others",
        cluster.executor,
        tmp_path,
        scenarios=scenarios,
        baseline_sweep="off",
        concurrency=4,
        eval_rollouts=1,
    )
    run, _ = run_job(job)
    assert print.__module__ == "builtins"  # Ray would have one of its own
    found = {r.scenario_id: (r.status, r.failure and r.failure.code) for r in rollouts(run)}
    assert found == {
        "fine": ("ok", None),
        "exit": ("failed", "crash"),
        "good": ("ok", None),
        "well": ("ok", None),
    }


def test_a_file_for_which_the_object_store_has_no_room_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    scenarios = []
    for name in ("first", "second"):
        path = tmp_path / name
        path.write_bytes(os.urandom(50 * MIB))
        given = Attachment(name="given.bin", path=path, sha256=stamp_bytes(path.read_bytes()))
        scenarios.append(scenario(name, name, attachments=(given,)))
    full = {"local_fs_capacity_threshold": 0.001}  # of the disk that takes what the store has no room for
    with open_cluster(object_store_memory=80 * MIB, _system_config=full) as nodes:
        job = job_of(
            "half", nodes.executor, tmp_path, scenarios=scenarios, baseline_sweep="off", eval_rollouts=2
        )
        run, _ = run_job(job)
    found = Counter((r.scenario_id, r.status, r.failure and r.failure.code) for r in rollouts(run))
    assert found == {("first", "ok", None): 2, ("second", "error", "workspace"): 2}
    told = {r.failure.message for r in rollouts(run) if r.failure}
    assert all(
        text.startswith(f"cannot send {tmp_path / 'second'} to the cluster: OutOfDisk") for text in told
    )


def test_a_run_ends_where_no_worker_starts_any_more(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((workers, "LOOK_S"), (patience, "FIRST_S"), (patience, "TOTAL_S")):
        monkeypatch.setattr(module, name, 0.2)
    monkeypatch.setattr(workers, "NOBODY_S", 3.0)
    job = job_of(
        "dies_beside_others",
        cluster.executor,
        tmp_path,
        scenarios=[scenario("exit", "exit"), scenario("fine", "fine")],
        baseline_sweep="off",
        concurrency=1,
        eval_rollouts=1,
    )
    require_executor(job)
    strategy = "ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy"
    monkeypatch.setattr(strategy, lambda *_, **__: object())  # Ray refuses every further worker
    run, _ = run_job(job)
    assert run.status == "incomplete"
    assert "the cluster has no worker any more: a worker did not start: TypeError" in run.reason
    assert {r.scenario_id: r.failure and r.failure.code for r in rollouts(run)} == {
        "exit": "crash",
        "fine": "connection",
    }


def test_a_driver_that_is_killed_leaves_no_agent(cluster: Nodes, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    program = f"""
        from pathlib import Path
        from support.executors import job_of, scenario
        from support.jobs import run_job
        scenarios = [scenario(f"s{{n}}", {str(told)!r}) for n in range(4)]
        run_job(job_of("stays", {cluster.executor!r}, Path({str(tmp_path)!r}), scenarios=scenarios))
    """
    driver = subprocess.Popen(
        [sys.executable, "-c", dedent(program)], cwd=ROOT / "tests", start_new_session=True
    )
    wait_until(lambda: alive(told))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    wait_until(lambda: not alive(told))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[resources."*"]\ngpu = 2',
            r"a rollout of 'python:.*' needs 2 GPU, which no node .* has; they have .*0 GPU",
        ),
        ('[resources."*"]\ncustom = {licence = 1}', "needs 1 licence, which no node"),
        (
            '[package]\nmax = "1KiB"',
            r"more than 1\.0 KiB of files that travel .*; the largest are 'big\.txt'",
        ),
    ],
)
def test_what_no_node_has_is_told_before_anybody_is_asked(
    text: str, message: str, cluster: Nodes, project_root: Path
) -> None:
    (project_root / "executor.toml").write_text(text)
    (project_root / "big.txt").write_bytes(os.urandom(5000))
    with pytest.raises(SettingError, match=message):
        require_executor(job_of("half", cluster.executor, project_root, job_root=project_root))


def test_an_agent_that_a_node_cannot_open_is_told_before(cluster: Nodes, project_root: Path) -> None:
    (project_root / ".gitignore").write_text("support\n")
    subprocess.run(["git", "init", "-q", str(project_root)], check=True)
    (project_root / "support").rename(project_root / "elsewhere")
    job = job_of("half", cluster.executor, project_root, job_root=project_root)
    with pytest.raises(SettingError, match=r"the node '.*' cannot open the actor 'python:support.*no module"):
        require_executor(job)


def test_an_address_where_nothing_answers_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"no Ray cluster answers at '127\.0\.0\.1:1'"):
        require_executor(job_of("half", "ray:127.0.0.1:1", tmp_path, job_root=tmp_path))


@pytest.fixture
def project_root(tmp_path: Path) -> Path:
    """A project with the agents of the contract suite."""
    package = tmp_path / "project" / "support"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    source = ROOT / "tests" / "support" / "worker_agents.py"
    (package / "worker_agents.py").write_bytes(source.read_bytes())
    return package.parent


def test_a_rollout_that_takes_something_of_its_node_has_a_process_of_its_own(
    cluster: Nodes, project_root: Path
) -> None:
    needs = 'cpu = 1\ngpu = 0.5\nmemory = "64MiB"\ncustom = {licence = 1}\n'
    (project_root / "executor.toml").write_text(f'[resources."*"]\n{needs}')
    only = cluster.add(num_gpus=1, resources={"licence": 2})
    scenarios = [scenario(name, name) for name in ("fine", "exit", "well")]
    job = job_of(
        "dies_beside_others",
        cluster.executor,
        project_root,
        scenarios=scenarios,
        baseline_sweep="off",
        eval_rollouts=1,
        job_root=project_root,
    )
    try:
        run, seen = run_job(job)
    finally:
        cluster.remove(only)
    found = {r.scenario_id: (r.status, r.failure and r.failure.code) for r in rollouts(run)}
    assert found == {"fine": ("ok", None), "exit": ("failed", "crash"), "well": ("ok", None)}
    notices = [one.text for one in seen if isinstance(one, Notice)]
    each = "1 CPU, 0.5 GPU, 1 licence, 0.0625 GiB of memory each"
    assert [text for text in notices if text.endswith(f"1 slot, {each}")]


def test_without_ray_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match=r"pip install 'pytest-tfgrpo\[ray\]'"):
        require_executor(job_of("half", "ray", tmp_path, job_root=tmp_path))
