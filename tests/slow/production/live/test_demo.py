"""``tfgrpo live demo``: the offline agent serves, the selector learns, the store fails and is killed."""

import re
from pathlib import Path

import pytest
from support.tools import tfgrpo


def test_the_demo_learns_survives_failures_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-01, C-02, C-03: runs are persisted, updates made on schedule, and failures hold the gate."""
    out = tfgrpo("live", "demo", "--tasks", "400", "--into", str(tmp_path / "demo"))
    assert re.search(r"^learned +\d\d lessons", out)
    selector = [int(row.split()[-1]) for row in re.findall(r"^ +\d+ +0\.\d{3} .*$", out, re.MULTILINE)]
    assert selector == sorted(selector)
    assert selector[-1] >= 16
    last, best = map(float, re.findall(r"^last 100 .* mean score (\S+); best arm (\S+)$", out, re.M)[0])
    assert last >= 0.75 * best
    assert re.search(r"^score: selector .* difference \+0\.\d+, 95 % interval \+0\.\d+ to ", out, re.M)
    assert re.search(r"^learned +0\.\d+ +0\.\d+ to 0\.\d+ +\d+ +0\.\d+$", out, re.MULTILINE)
    assert re.search(r"^failures +3 writes failed, the gate holds; 39 runs took the default arm$", out, re.M)
    assert re.search(r"^reset +by a person, with a reason: 20 runs collected again$", out, re.MULTILINE)
    assert re.search(r"^kill -9 .*: \d+ runs were durable; 0 lost, 0 used twice, 0 renumbered$", out, re.M)
    monkeypatch.chdir(tmp_path / "demo")
    status = tfgrpo("live", "status")
    assert re.search(r"^gate +passes since .* UTC, reset by demo: the disk has room again$", status, re.M)
