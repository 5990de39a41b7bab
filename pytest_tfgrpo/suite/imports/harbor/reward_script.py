"""Which tests a ``test.sh`` runs, where it does no more than run pytest and write 1 or 0."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.suite.imports.harbor.shell_words import installs, statements
from pytest_tfgrpo.suite.imports.harbor.task_folder import TaskProblem
from pytest_tfgrpo.suite.imports.harbor.task_form import REWARD

PLACE = "/tests"
"""Where a container has the tests."""
HARMLESS = re.compile(
    r"-(r\w+|q+|v+|s|l)|--(tb|color|durations|ctrf|junitxml|junit-xml)=\S+|--(quiet|verbose)"
)
"""Options of pytest that do not change which tests count."""
WITH_VALUE = frozenset({"--ctrf", "--junitxml", "--junit-xml", "--tb", "--color"})
UV = ("uv", "uvx")
UV_WITH_VALUE = frozenset({"--with", "-w", "--python", "-p", "--from"})
PROLOGUE = re.compile(r"(set [-+][a-z]+( [a-z]+)?|mkdir -p /logs/verifier/?|exit 0)")
_GUARD = (["if", "[", "$PWD", "=", "/", "]"], ["then"], ["echo"], ["exit", "1"], ["fi"])
"""A script that ends early where nothing sets its working folder."""


def read_script(text: str, workdir: str) -> tuple[tuple[str, ...], bool]:
    """Return the files of tests that a script runs, below ``tests/``, and whether it installs something.

    No file means all of them. Raises TaskProblem where the script does anything else.
    """
    try:
        found = list(statements(text))
    except ValueError as error:
        raise TaskProblem(f"tests/test.sh: {error}") from None
    installed, left = False, list[list[str]]()
    while found:
        if _guarded(found):
            del found[: len(_GUARD)]
            continue
        one = found.pop(0)
        if _is_installation(one):
            installed = True
        elif not PROLOGUE.fullmatch(" ".join(one)) and one != ["cd", workdir]:
            left.append(one)
    run = _run_of(left)
    if run is None:
        shown = short(" ".join(next((one for one in left if "pytest" not in one), [*left, []][0])), 80)
        raise TaskProblem(
            f"its test.sh does more than run pytest and write 1 or 0, and no container is run here: {shown}"
        )
    return _files(run), installed or run[0] in UV


def _guarded(found: Sequence[Sequence[str]]) -> bool:
    start = found[: len(_GUARD)]
    return len(start) == len(_GUARD) and all(
        list(one[:1]) == ["echo"] if wanted == ["echo"] else list(one) == wanted
        for one, wanted in zip(start, _GUARD, strict=True)
    )


def _is_installation(one: Sequence[str]) -> bool:
    if one[0] == "curl":  # an installer of uv, piped into a shell
        return any("astral.sh/uv" in word for word in one) and one[-2:] == ["|", "sh"]
    if one[0] in ("source", "."):
        return len(one) == 2 and one[1].endswith("/.local/bin/env")
    return installs(one)


def _run_of(left: Sequence[Sequence[str]]) -> Sequence[str] | None:
    """Return the words of pytest's run where the rest writes 1 after it passed, and 0 else."""
    passed, failed = ([f"echo {word} > {REWARD}" for word in words] for words in (("1", "1.0"), ("0", "0.0")))
    rows, status = [" ".join(one) for one in left], "$?"
    if len(rows) > 7 and (kept := re.fullmatch(r"(\w+)=\$\?", rows[1])):
        status = f"${kept[1]}"
        rows = [rows[0], *rows[2:-1], *(rows[-1:] if rows[-1] != f"exit {status}" else ())]
    if len(rows) == 7 and rows[1] in (f"if [ {status} -eq 0 ]", f"if [[ {status} -eq 0 ]]"):
        run, rest = left[0], rows[2:]
    elif len(rows) == 6 and left[0][0] == "if":
        run, rest = left[0][1:], rows[1:]
    else:
        return None
    then, one, other, zero, end = rest
    right = then == "then" and one in passed and other == "else" and zero in failed and end == "fi"
    return run if right and run else None


def _files(run: Sequence[str]) -> tuple[str, ...]:
    """Return the files that pytest is to run; raises TaskProblem for options that choose among tests."""
    files, rest = list[str](), _behind_pytest(run)
    while rest:
        word, *rest = rest
        if word in WITH_VALUE and rest:
            rest = rest[1:]
        elif word.rstrip("/") == PLACE:
            continue
        elif word.startswith(f"{PLACE}/") and "::" not in word and ".." not in word:
            files.append(word.removeprefix(f"{PLACE}/"))
        elif not HARMLESS.fullmatch(word):
            raise TaskProblem(f"its test.sh runs pytest with {short(word)}, which cannot be followed")
    return tuple(files)


def _behind_pytest(run: Sequence[str]) -> list[str]:
    """Return the words behind ``pytest``, however it is started; raises TaskProblem."""
    rest = list(run)
    if rest[0] in UV:
        rest = rest[1:]
        while rest and rest[0] != "pytest":
            taken = 2 if rest[0] in UV_WITH_VALUE else 1
            if taken == 1 and rest[0] not in ("run", "tool") and not rest[0].startswith("--with="):
                break
            rest = rest[taken:]
    elif re.fullmatch(r"python3?", rest[0]) and rest[1:2] == ["-m"]:
        rest = rest[2:]
    if rest[:1] != ["pytest"]:
        raise TaskProblem(f"its test.sh does not run pytest, but {short(' '.join(run), 80)}")
    return rest[1:]
