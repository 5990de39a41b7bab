"""Bubblewrap's command line: what holds of every sandbox."""

import os
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox.programs.bubblewrap import Network, Sandbox


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
