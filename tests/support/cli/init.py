"""What the tests of cli/test_init.py share with the slow ones."""

from pathlib import Path

FILES = {
    "fixtures/figures.scenario.yaml",
    "fixtures/words.scenario.yaml",
    "out/.gitignore",
    "prompt-packs/starter/manifest.json",
    "prompt-packs/starter/system.md",
}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
