"""Bubblewrap's command line: what holds of every sandbox."""

import pytest

from pytest_tfgrpo.harness.sandbox.bubblewrap import Network, Sandbox


@pytest.mark.parametrize("network", ["none", "loopback", "host"])
def test_every_sandbox_drops_capabilities_and_namespaces_and_ends_with_its_parent(network: Network) -> None:
    argv = Sandbox(bwrap="bwrap", network=network).argv(["true"], None)
    options = argv[: argv.index("--")]
    assert {"--unshare-all", "--die-with-parent", "--new-session"} <= set(options)
    assert options[options.index("--cap-drop") + 1] == "ALL"
    assert "--cap-add" not in options
    assert ("--share-net" in options) == (network == "host")
