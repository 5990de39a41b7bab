"""Bubblewrap's command line: what holds of every sandbox."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.sandbox.programs import bubblewrap
from pytest_tfgrpo.sandbox.programs.bubblewrap import Network, Sandbox, open_bwrap


@pytest.mark.parametrize("network", ["none", "loopback", "host"])
def test_every_sandbox_drops_capabilities_and_namespaces_and_ends_with_its_parent(network: Network) -> None:
    argv = Sandbox(bwrap="bwrap", network=network).argv(["true"], None)
    options = argv[: argv.index("--")]
    assert {"--unshare-all", "--die-with-parent", "--new-session"} <= set(options)
    assert options[options.index("--cap-drop") + 1] == "ALL"
    assert "--cap-add" not in options
    assert ("--share-net" in options) == (network == "host")


@pytest.mark.parametrize(
    ("search", "seen"),
    [
        (
            ["/usr/bin", "/home/me/bin", "/opt/venv/bin", "/srv/data/bin"],
            ["/usr/bin", "/opt/venv/bin", "/srv/data/bin"],
        ),
        (["/opt", "/opt/other/bin"], ["/opt"]),
        (["bin", ".", "", "usr/bin/"], None),
        (["/home/me/bin"], None),
    ],
)
def test_of_path_a_sandbox_has_the_absolute_folders_that_can_be_seen_in_it(
    search: list[str], seen: list[str] | None
) -> None:
    sandbox = Sandbox(bwrap="bwrap", readable=(Path("/opt/venv"),), writable=(Path("/srv/data"),))
    found = sandbox.environment(os.pathsep.join(search), {"KEY": "x"})
    assert found["PATH"] == (os.defpath if seen is None else os.pathsep.join(seen))
    assert found["KEY"] == "x"


def test_a_hidden_folder_that_holds_no_listed_path_is_empty(tmp_path: Path) -> None:
    apart, kept = tmp_path / "apart", tmp_path / "kept"
    for folder in (apart, kept):
        folder.mkdir()
    sandbox = Sandbox(
        bwrap="bwrap", hidden=(Path("/usr/share"), Path("/usr/lib")), readable=(Path("/usr/lib"), kept)
    )
    mounts = " ".join(sandbox.argv(["true"], None))
    assert "--tmpfs /usr/share" in mounts
    assert "--tmpfs /usr/lib" not in mounts


def test_a_hidden_folder_within_one_of_several_listed_paths_is_shown(tmp_path: Path) -> None:
    for name in ("kept/inside", "other"):
        (tmp_path / name).mkdir(parents=True)
    listed = (tmp_path / "kept", tmp_path / "other")
    sandbox = Sandbox(bwrap="bwrap", hidden=(tmp_path / "kept" / "inside",), readable=listed)
    assert f"--tmpfs {tmp_path}/kept/inside" not in " ".join(sandbox.argv(["true"], None))


def test_a_program_runs_in_its_workspace_with_its_limits_and_nothing_else_can_be_written() -> None:
    sandbox = Sandbox(bwrap="/bin/bwrap", limited=("prlimit", "--nproc=9", "--"))
    argv = sandbox.argv(["agent", "-x"], Path("/work-folder"))
    assert argv[0] == "/bin/bwrap"
    last = ["--remount-ro", "/", "--", "prlimit", "--nproc=9", "--", "agent", "-x"]
    assert argv[-13:] == ["--bind", "/work-folder", "/work-folder", "--chdir", "/work-folder", *last]
    without = sandbox.argv(["agent", "-x"], None)
    assert without[-8:] == last
    assert "--chdir" not in without


def test_what_the_kernel_and_the_network_of_the_machine_show_is_read_only_or_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Path, "exists", lambda _path: True)
    monkeypatch.setattr(Path, "is_symlink", lambda _path: False)
    for network in ("none", "loopback", "host"):
        options = Sandbox(bwrap=f"bwrap-{network}", network=network).argv(["true"], None)  # type: ignore[arg-type]
        shown = [options[n + 1] for n, word in enumerate(options) if word == "--ro-bind"]
        assert {"/proc/sys", "/proc/fs", "/proc/irq", "/proc/mtrr", "/usr", "/etc/passwd"} <= set(shown)
        assert ("/etc/resolv.conf" in shown) is (network != "none")
        assert ("/etc/ssl/certs" in shown) is (network != "none")
        assert "/etc/shadow" not in shown
        assert options[options.index("--tmpfs") + 1] == "/tmp"
        assert "--dev" in options


def test_variables_that_are_passed_replace_those_of_a_sandbox() -> None:
    sandbox = Sandbox(bwrap="bwrap")
    assert sandbox.environment("/usr/bin", {}) == {
        "PATH": "/usr/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
    }
    assert sandbox.environment("/usr/bin", {"LANG": "de", "HOME": "/h"})["LANG"] == "de"


@pytest.mark.parametrize(
    ("code", "stderr", "said"),
    [
        (0, b"", None),
        (99, b"", "an agent could change kernel settings in /proc/sys here; run as an ordinary user"),
        (
            1,
            b" no namespaces\xff\n",
            "cannot make a sandbox here: 'no namespaces\ufffd'; allow user namespaces",
        ),
    ],
)
def test_a_bubblewrap_that_does_not_work_here_is_said_before_anything_is_paid(
    code: int, stderr: bytes, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], **_more: object) -> subprocess.CompletedProcess[bytes]:
        ran.append(argv)
        return subprocess.CompletedProcess(argv, code, b"", stderr)

    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: f"/opt/{name}")
    monkeypatch.setattr(bubblewrap.subprocess, "run", run)
    if said is None:
        assert open_bwrap() == "/opt/bwrap"
    else:
        with pytest.raises(ActorError, match=re.escape(said)):
            open_bwrap()
    assert ran[0][0] == "/opt/bwrap"
    assert ran[0][-1] == bubblewrap.PROBE


def test_a_bubblewrap_that_is_missing_or_hangs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _name: None)
    with pytest.raises(ActorError, match=r"not installed; install it .* or set sandbox=none"):
        open_bwrap()

    def hang(argv: list[str], *, timeout: float, **_more: object) -> None:
        raise subprocess.TimeoutExpired(argv, timeout)

    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: f"/opt/{name}")
    monkeypatch.setattr(bubblewrap.subprocess, "run", hang)
    with pytest.raises(ActorError, match=r"/opt/bwrap does not start: .*10.0 seconds"):
        open_bwrap()
