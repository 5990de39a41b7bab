"""What the tests of plugin/test_fixtures.py share with the slow ones."""

from support.project import Project

BOOKING = """
import sqlite3
from pathlib import Path

LOG = Path(__file__).with_name("calls.log")


@pytest.fixture
def db(tmp_path):
    connection = sqlite3.connect(tmp_path / "rooms.db")
    connection.execute("CREATE TABLE bookings(day)")
    with LOG.open("a") as log: log.write("up\\n")
    yield connection
    connection.close()
    with LOG.open("a") as log: log.write("down\\n")


@pytest.fixture
def tfgrpo_agent(db):
    def solve(context):
        right = "<experiences" in context.prompt.system or context.seed % 2
        db.execute("INSERT INTO bookings VALUES (?)", ("monday" if right else "tuesday",))
        with LOG.open("a") as log: log.write("asked\\n")
        tool = "find_day" if right else "guess"
        return {"answer": "booked", "frames": [{"kind": "tool", "name": tool, "output": "ok", "tokens": 2}]}
    return solve


def booked(db):
    return [day for (day,) in db.execute("SELECT day FROM bookings")]
"""
TESTS = """
@pytest.mark.tfgrpo(split="train", prompt="Book the {room} room for Monday.")
@pytest.mark.parametrize("room", ["red", "green", "blue", "black"])
def test_train(rollout, tfgrpo_agent, db, room):
    assert booked(db) == ["monday"]


@pytest.mark.tfgrpo(split="eval", prompt="Reserve the white room for Monday.")
def test_booking(rollout, tfgrpo_agent, db):
    assert booked(db) == ["monday"]
"""


def log(project: Project) -> list[str]:
    return (project.root / "calls.log").read_text().split()


ENDING = """
import signal

@pytest.fixture
def tfgrpo_agent():
    def solve(context):
        {body}
        return {{"answer": "3", "frames": [{{"kind": "tool", "name": "t", "output": "", "tokens": 10}}]}}
    return solve

@pytest.mark.tfgrpo(split="eval", prompt="Book {{room}}.")
@pytest.mark.parametrize("room", ["red", "green", "blue"])
def test_sweep(rollout, tfgrpo_agent, room):
    assert rollout.answer == "3"
"""
