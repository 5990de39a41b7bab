import os
import signal
import subprocess
import sys
from pathlib import Path

from support import ROOT
from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Experience, Tombstone
from pytest_tfgrpo.learning.library.experience_lines import encode
from pytest_tfgrpo.learning.library.experience_store import ExperienceStore


def script(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python process that has the test helpers and the store at hand."""
    head = (
        "import sys\nfrom pathlib import Path\n"
        "from support.builders import make_experience\n"
        "from pytest_tfgrpo.learning.library.experience_store import ExperienceStore\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def file_of(folder: Path, *records: Experience | Tombstone) -> Path:
    path = folder / "experiences.jsonl"
    path.write_bytes(b"".join(encode(record) + b"\n" for record in records))
    return path


def test_no_acknowledged_batch_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    writer = script(
        "store = ExperienceStore.open(Path(sys.argv[1]))\n"
        "for n in range(10**6):\n"
        "    store.append([make_experience(10 * n + i) for i in range(10)])\n"
        "    print(n, flush=True)\n",
        path,
    )
    assert writer.stdout is not None
    acknowledged = -1
    for line in writer.stdout:
        acknowledged = int(line)
        if acknowledged == 25:
            writer.send_signal(signal.SIGKILL)
            break
    rest = writer.communicate()[0].split()
    acknowledged = int(rest[-1]) if rest else acknowledged
    with ExperienceStore.open(path) as store:
        ids = [e.id for e in store.records()]
    assert ids == [make_experience(n).id for n in range(len(ids))]
    assert len(ids) >= 10 * (acknowledged + 1)


def test_two_processes_that_append_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    code = (
        "first, path = int(sys.argv[1]), Path(sys.argv[2])\n"
        "store = ExperienceStore.open(path)\n"
        "for n in range(60):\n"
        "    shared = make_experience(1_000_000 + n)\n"
        "    store.append([make_experience(first + 5 * n + i) for i in range(5)] + [shared])\n"
        "print(len(store))\n"
    )
    writers = [script(code, first, path) for first in (0, 300)]
    counts = []
    for writer in writers:
        out, error = writer.communicate()
        assert writer.returncode == 0, error
        counts.append(int(out))
    with ExperienceStore.open(path) as store:
        ids = [e.id for e in store.records()]
        assert store.skipped == []
    wanted = {make_experience(n).id for n in [*range(600), *range(1_000_000, 1_000_060)]}
    assert len(ids) == len(set(ids)) == 660
    assert set(ids) == wanted
    assert max(counts) == 660, "the last to append has indexed what the other wrote"


def test_a_full_disk_names_the_file_and_leaves_what_was_committed(tmp_path: Path) -> None:
    path = file_of(tmp_path, make_experience(0))
    committed = path.read_bytes()
    writer = script(
        "import resource\n"
        "from pytest_tfgrpo.core.errors import StoreError\n"
        "store = ExperienceStore.open(Path(sys.argv[1]))\n"
        "limit = Path(sys.argv[1]).stat().st_size + 1000\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "try:\n"
        "    store.append([make_experience(n) for n in range(1, 50)])\n"
        "except StoreError as error:\n"
        "    print(error)\n"
        "print(store.append([make_experience(100)]))\n",
        path,
    )
    out, error = writer.communicate()
    assert writer.returncode == 0, error
    assert out.startswith(f"cannot write the lesson store {path}")
    assert out.splitlines()[-1] == "1", "the store is usable once there is room"
    assert path.read_bytes() == committed + encode(make_experience(100)) + b"\n"
