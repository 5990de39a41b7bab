"""Bubblewrap with a program in it: what even root may not do there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.tools import require_tool

from pytest_tfgrpo.sandbox.programs.bubblewrap import Network, Sandbox

NETWORKS: tuple[Network, ...] = ("none", "loopback", "host")


def inside(folder: Path, program: str, network: Network = "none") -> str:
    """Return what a program of the shell prints in a sandbox."""
    sandbox = Sandbox(bwrap=require_tool("bwrap"), network=network)
    argv = sandbox.argv(["/bin/sh", "-c", program], folder)
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def capabilities(text: str) -> dict[str, int]:
    """Return the capability sets of ``/proc/self/status`` by name."""
    rows = (line.split() for line in text.splitlines() if line.startswith("Cap"))
    return {name.rstrip(":"): int(value, 16) for name, value in rows}


@pytest.mark.parametrize("network", NETWORKS)
def test_a_program_has_no_capability_also_as_root(tmp_path: Path, network: Network) -> None:
    found = capabilities(inside(tmp_path, "cat /proc/self/status", network))
    assert found["CapEff"] == found["CapPrm"] == found["CapInh"] == found["CapAmb"] == found["CapBnd"] == 0


def test_a_program_mounts_nothing_and_opens_no_kernel_setting_also_as_root(tmp_path: Path) -> None:
    tries = (
        "mount -t tmpfs none /tmp",
        "mount -o remount,rw,bind /proc/sys && : >> /proc/sys/kernel/core_pattern",
        "umount /proc/sys && : >> /proc/sys/kernel/core_pattern",
    )
    program = "; ".join(f"({one}) 2> /dev/null && echo {n}" for n, one in enumerate(tries))
    assert inside(tmp_path, program + "; true") == ""


@pytest.mark.skipif(os.getuid() != 0, reason="only root has capabilities to lose")
def test_the_tests_of_capabilities_run_where_there_are_some() -> None:
    assert capabilities(Path("/proc/self/status").read_text())["CapEff"] != 0


def test_a_program_has_a_session_of_its_own(tmp_path: Path) -> None:
    """With the terminal's session it could put words into the terminal that it was started from."""
    sandbox = Sandbox(bwrap=require_tool("bwrap"), readable=(Path(sys.prefix), Path(sys.base_prefix)))
    argv = sandbox.argv([sys.executable, "-c", "import os; print(os.getsid(0))"], tmp_path)
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)
    assert int(ran.stdout) > 0, ran.stderr  # 0: its leader is outside
