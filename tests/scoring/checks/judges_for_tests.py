"""Callables for tests of the python check."""

import sys

import pytest


def length(context):
    return len(context.answer) / 10


def outcome(context):
    return eval(context.answer)


def fail(context):
    pytest.fail("no")


def leave(context):
    sys.exit(0)


async def later(context):
    return True


class Judge:
    @staticmethod
    def sees(context):
        return (context.task.id, context.frames, context.workspace.path.is_dir()) == ("a", (), True)
