"""What the tests of plugin/test_exits.py share with the slow ones."""

AGENT = """
import asyncio, os, posix, threading, time
from os import _exit
from pathlib import Path


def first():
    try:
        Path(__file__).with_name("first").touch(exist_ok=False)
    except FileExistsError:
        return False
    time.sleep(0.2)  # what ran beside it is on file
    return True


async def quits(context):
    if context.scenario.id == "suite-eval1" and first():
        os._exit(0)
    return "3"


def quits_by_name(context):
    if context.scenario.id == "suite-eval1" and first():
        _exit(0)
    return "3"


def quits_in_a_thread(context):
    if context.scenario.id == "suite-eval1" and first():
        thread = threading.Thread(target=posix._exit, args=(5,))
        thread.start()
        thread.join()
    return "3"


def becomes_another_program(context):
    if context.scenario.id == "suite-eval1" and first():
        os.execvp("true", ["true"])
    return "3"


def forks(context):
    child = os.fork()
    if not child:
        os._exit(7)
    assert os.waitpid(child, 0)[1] >> 8 == 7
    child = os.fork()
    if not child:
        os.execvp("false", ["false"])
    assert os.waitpid(child, 0)[1] >> 8 == 1
    return "3"


def exits_its_thread(context):
    raise SystemExit(0)
"""
