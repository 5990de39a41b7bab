"""The folder of all that runs write, which git is to ignore."""

from __future__ import annotations

from pathlib import Path

IGNORED = "# Made by pytest-tfgrpo: runs hold prompts, answers and the answers expected.\n*\n"


def make_output(out: Path) -> bool:
    """Make the output folder, which git is to ignore; returns whether it was made.

    One that is there is left as it is. What cannot be written is said by what is written next.
    """
    try:
        out.mkdir(parents=True)
        (out / ".gitignore").write_text(IGNORED, encoding="utf-8")
    except OSError:
        return False
    return True
