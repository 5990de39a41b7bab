"""The command ``tfgrpo stamp``: stamp prompt packs after a review, or check their stamps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import PackError
from pytest_tfgrpo.core.settings.runs import PROMPT_PACKS
from pytest_tfgrpo.suite.packs import MANIFEST, load_pack, pack_folders, write_pack_stamp


def stamp(arguments: Arguments) -> Iterator[str]:
    """Stamp prompt packs after a review, or verify their stamps."""
    problems = []
    if arguments.check and not arguments.folders and (folder := _unused(arguments)):
        yield f"no prompt pack in {folder}: the built-in one is in use"
        return
    for folder in _packs(arguments):
        if not arguments.check:
            changed = write_pack_stamp(folder)
            yield f"{'stamped' if changed else 'unchanged'}  {folder}"
            continue
        try:
            yield f"ok  {folder}  {load_pack(folder).stamp[:12]}"
        except PackError as error:
            problems.append(str(error))
    if problems:
        raise PackError("\n".join(problems))


def _unused(arguments: Arguments) -> Path | None:
    """Return the project's folder of packs where a run takes the built-in one, as nothing is there."""
    project = project_of(arguments)
    folder = project.root / PROMPT_PACKS.of(project.settings)
    missing = not folder.exists() and "prompt_packs" not in project.settings.origins
    empty = folder.is_dir() and not (folder / MANIFEST).is_file() and not pack_folders(folder)
    return folder if missing or empty else None


def _packs(arguments: Arguments) -> Iterator[Path]:
    project = project_of(arguments)
    for name in arguments.folders or [project.root / PROMPT_PACKS.of(project.settings)]:
        folder = Path(name)
        packs = [folder] if (folder / MANIFEST).is_file() else pack_folders(folder)
        if not packs:
            raise PackError(
                f"{folder} is not a prompt pack and contains none; a pack is a folder with {MANIFEST}"
            )
        yield from packs
