"""`tfgrpo learn work --rollouts`: the agent tries a proven fix again, and a smaller one waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.repositories import git
from support.tools import require_tool, tfgrpo

from pytest_tfgrpo.cli.learn.demo_repository import FIX, change, make_shop, prompt

AGENT = '''
from itertools import count

TRIES = count()
BETTER = """\\
    orders = store.orders()
    names = store.customers(set(orders.values()))
    lines = []"""


def solve(context):
    """Mend the page in the first try, and break it in the second."""
    page = context.workspace / "shop" / "pages.py"
    text = page.read_text()
    text = text.replace("    lines = []", BETTER)
    text = text.replace("store.orders().items()", "orders.items()")
    text = text.replace("store.customers([customer])[customer]", "names[customer]")
    page.write_text("" if next(TRIES) else text)
    (context.workspace / "tests" / "test_pages.py").write_text("assert True\\n")
    return {"answer": "done"}
'''
TESTED = {"command": "python -m pytest -q tests/test_pages.py", "exit_code": 0}


@pytest.mark.timeout(400)
def test_a_smaller_fix_of_the_agent_is_proven_as_a_job_of_its_own_once_a_person_approves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tool("bwrap")
    shop = tmp_path / "shop"
    make_shop(shop)
    change(shop, FIX)
    (tmp_path / "prompt.md").write_text(prompt())
    (tmp_path / "history.jsonl").write_text(json.dumps(TESTED) + "\n")
    monkeypatch.chdir(shop)
    (tmp_path / "tries.py").write_text(AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TFGRPO_ACTOR", "python:tries:solve")
    before = git(shop, "diff", "HEAD"), git(shop, "rev-parse", "HEAD")
    given = ("--prompt", "../prompt.md", "--history", "../history.jsonl")
    tfgrpo("learn", "capture", "--approver", "ann", *given)
    said = tfgrpo("learn", "work", "--rollouts", "2")
    assert (
        "1 of 2 rollouts of python:tries:solve passed; the smallest changes 6 lines, the approved fix 8; job"
        in said
    )
    assert (git(shop, "diff", "HEAD"), git(shop, "rev-parse", "HEAD")) == before
    first, second = json.loads(tfgrpo("learn", "status", "--json"))["jobs"]
    assert "optimised: 1 of 2 rollouts of python:tries:solve passed" in tfgrpo(
        "learn", "show", first["job_id"]
    )
    assert second["captured"]["improves"] == first["job_id"]
    assert (second["captured"]["trigger"], second["captured"]["approver"]) == ("self", "python:tries:solve")
    assert second["snapshot"]["base_tree"] == first["snapshot"]["base_tree"]
    tests = ":tests/test_pages.py"
    assert git(shop, "show", second["snapshot"]["commit"] + tests) == git(
        shop, "show", first["snapshot"]["commit"] + tests
    )
    assert "no job waits for a worker" in tfgrpo("learn", "work", "--rollouts", "2")
    tfgrpo("learn", "approve", second["job_id"], "--approver", "ann")
    said = tfgrpo("learn", "work", "--rollouts", "2")
    assert "1 validated" in said
    assert "rollouts of" not in said
