"""The text of a first ``harvest.toml``: what is guessed, each value with its source, to be reviewed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.toml_text import toml_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.fixes import RecipePart
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge, folder_recipe, folders_with_tests

_PLAIN = re.compile(r"[^\x00-\x1f\\]+")
"""A folder that the file can name."""
FOLDERS = 200
SOURCE = 300
"""Characters of a source that a comment shows."""
HEAD = """\
# How the tests of this repository run, for `tfgrpo harvest`. Review it: a value here overrides every guess,
# for all commits. Without a key, harvest guesses its value from the files of each commit.
#
# runner        pytest, node-test, vitest, jest, or command
# run           words of the runner command: {report} is the JUnit XML it writes, {tests} the files to run;
#               of node-test: flags of node, such as "--import=tsx"
# python        an interpreter of this machine, such as "3.11"
# dependencies  requirements by name
# setup         commands, each a list of words; they have the network and write a folder of their own
# files         files of the folder that the set-up commands need
# paths         folders from which modules are imported
# env           environment variables of the tests
# tests         globs of files with tests, where names do not show it
# protected     globs of further files that no agent may change, such as "tests/data/**"
"""
NONE = """\
# nothing names a runner for the tests in {folder}; write one
# [folder.{folder}]
# runner = "command"
# run = ["make", "test", "REPORT={{report}}"]
"""


def init_text(
    read: Callable[[str], bytes | None],
    names: Collection[str],
    *,
    interpreters: tuple[str, ...] = (),
    committed_at: int,
) -> str:
    """Return the text of a ``harvest.toml`` for a tree, which reads back as the recipe that is guessed.

    `read` returns a file by its path, `names` are the paths of all files; `interpreters` are the minor
    versions of the Pythons on this machine.
    """
    tree = ProjectFiles(read=read, names=frozenset(names))
    knowledge = RecipeKnowledge(interpreters=interpreters)
    blocks = [HEAD]
    for folder, tests in list(folders_with_tests(tree).items())[:FOLDERS]:
        part = folder_recipe(tree, folder, tests[:1], knowledge, committed_at)
        if part is None or not _PLAIN.fullmatch(folder):
            blocks.append(NONE.format(folder=_comment(toml_text(folder))))
        else:
            blocks.append(f"[folder.{toml_text(folder)}]\n" + "".join(_keys(part)))
    if len(blocks) == 1:
        blocks.append(NONE.format(folder='"."'))
    return "\n".join(blocks)


def _keys(part: RecipePart) -> Iterator[str]:
    values: dict[str, Json] = {"runner": part.command.runner}
    if part.command.run:
        values["run"] = part.command.run
    if part.python:
        values["python"] = part.python
    if part.dependencies:
        values["dependencies"] = part.dependencies
    if part.setup:
        values["setup"] = part.setup
    if part.files:
        values["files"] = tuple(part.files)
    start = "" if part.folder == "." else f"{part.folder}/"
    if part.imports:
        values["paths"] = tuple("." if p == part.folder else p.removeprefix(start) for p in part.imports)
    if part.variables:
        values["env"] = part.variables
    for name, value in values.items():
        if source := part.sources.get(name):
            yield f"# {_comment(source)}\n"
        if name == "dependencies" and (left_out := part.sources.get("dependencies left out")):
            yield f"# left out, as no lock can hold it: {_comment(left_out)}\n"
        yield f"{name} = {toml_text(value)}\n"


def _comment(text: str) -> str:
    return line(text, SOURCE)
