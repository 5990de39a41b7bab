"""The commands ``tfgrpo live ...``, on a store that an application has filled."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.tools import tfgrpo


def test_the_example_learns_which_configuration_suits_which_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFGRPO_LIVE_RL_ENABLED", "1")
    assert "service.py 400, then" in tfgrpo("live", "init", "elsewhere")
    assert "wrote  live.toml\nwrote  service.py\nnext: TFGRPO" in tfgrpo("live", "init")
    assert "kept   service.py, which already exists" in tfgrpo("live", "init")
    subprocess.run([sys.executable, "service.py", "400"], check=True, timeout=100)
    learned = json.loads(tfgrpo("live", "status", "--json"))["probabilities"]["config"]
    assert learned["refund"]["thorough"] > 0.6
    assert learned["question"]["quick"] > 0.6
    gains = re.findall(
        r"^(\w+).*; difference \+0\.\d+, 95 % interval \+0\.\d+ to", tfgrpo("live", "report"), re.M
    )
    assert gains == ["reward", "score"], "a newcomer sees what it brings"
