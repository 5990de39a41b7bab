"""Files that are written whole or not at all."""

import subprocess
import sys
from pathlib import Path

from pytest_tfgrpo.core.files import write_atomic

KILLED = """
import os, signal, sys
from pathlib import Path
from typing import BinaryIO
from pytest_tfgrpo.core.files import write_atomic

def half():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

write_atomic(Path(sys.argv[1]), half())
"""


def test_what_a_killed_process_left_of_a_file_is_removed_when_it_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "li[b].json"
    for target in (path, tmp_path / "other"):
        subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert [name.rsplit(".", 2)[0] for name in left] == [".li[b].json", ".other"]
    write_atomic(path, [b"x"])
    assert sorted(file.name for file in tmp_path.iterdir()) == [left[1], "li[b].json"]


def test_processes_that_write_one_file_at_once_do_not_take_each_others_away(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from pytest_tfgrpo.core.files import write_atomic\n"
    script += "for n in range(100): write_atomic(Path(sys.argv[1]), [b'x' * 1000])"
    writers = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "a")]) for _ in range(4)]
    assert [writer.wait(100) for writer in writers] == [0, 0, 0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
