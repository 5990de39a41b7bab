"""A stand-in for a model: it plans one query a row, unless a lesson or a skill says otherwise."""

import re


def solve(context):
    known = context.prompt.system
    for skill in context.workspace.glob(".agents/skills/*/SKILL.md"):
        known += skill.read_text()
    rows = int(re.search(r"\d+", context.prompt.user)[0])
    return {"answer": str(2 if "in one query" in known else 1 + rows)}
