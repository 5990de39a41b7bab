"""What the tests of review/test_patch.py share with the slow ones."""

from pathlib import Path

from pytest_tfgrpo.review.patch import RewrittenFile
from pytest_tfgrpo.suite.suite_files import suite_files
from support.builders import make_scenario

TEXT = "# é 😀\n- id: a\n  prompt: p\n  checks:\n  - {kind: exact, value: x}\n"


def changed(folder: Path, name: str, text: str) -> RewrittenFile:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    files, refused = suite_files([make_scenario(source=f"{name}:1")], folder)
    assert refused == {}
    file = files[name]
    return RewrittenFile(file=file, text=file.text.replace("value: x", "value: 'x: #'"))
