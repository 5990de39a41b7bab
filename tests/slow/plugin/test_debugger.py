"""pytest --pdb: where it stops for an item that failed."""

import pytest
from support.project import Project

DEBUGGER = """
class Debugger:
    quitting = False

    def reset(self):
        pass

    def interaction(self, frame, found):
        crash = getattr(found, "__traceback__", found)
        while crash.tb_next:
            crash = crash.tb_next
        with open("stops.txt", "a") as file:
            print(crash.tb_frame.f_code.co_name, crash.tb_frame.f_locals.get("secret"), file=file)
"""
AGENT = """
def helper():
    secret = 42
    raise ValueError("inside")

def solve(context):
    return helper()

def wrong(context):
    return "wrong"
"""


@pytest.mark.parametrize(("name", "stop"), [("solve", "helper 42"), ("wrong", "show None")])
def test_it_stops_where_the_function_of_the_agent_raised(
    project: Project, name: str, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(project.root)
    project.scenarios(train=0, sweep=1).agent(AGENT).write("debugger.py", DEBUGGER)
    done = project.ini(actor=f"python:agent2:{name}", min_score="1").run(
        "--pdbcls=debugger:Debugger", "--pdb"
    )
    done.assert_outcomes(failed=1)
    assert (project.root / "stops.txt").read_text().splitlines() == [stop]
