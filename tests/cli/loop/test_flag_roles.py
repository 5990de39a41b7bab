"""Which services keep a file of flags."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pytest_tfgrpo.cli.loop.loop_roles import flag_roles
from pytest_tfgrpo.cli.loop.open_loop import open_configured
from pytest_tfgrpo.production.config import load_loop_config


def test_a_file_of_flags_is_beside_the_configuration_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "loop.toml"
    file.write_text("")
    config = load_loop_config(file, {})
    with closing(open_configured(config)) as bus:
        assert flag_roles(bus, config) == []
        file.write_text('[deployment]\nflag_file = "flags.json"\n')
        (role,) = flag_roles(bus, load_loop_config(file, {}))
        assert role.step() == 1
    assert '"defaultVariant": "v1"' in (tmp_path / "flags.json").read_text()
