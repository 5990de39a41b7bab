"""Hooks of a start that may set something of this plugin; `plugin/__init__` registers them then."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pytest_tfgrpo.core.files import USUAL_SUFFIXES
from pytest_tfgrpo.core.settings.gate import BASELINE
from pytest_tfgrpo.core.settings.telemetry import OTEL
from pytest_tfgrpo.plugin.start import gate_ids, options

declare = options.declare
ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""How pytest ends when it has collected everything."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    """Refuse a misspelt flag."""
    options.refuse_misspelt(args)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check every setting that is set, feature on or off (decision 20)."""
    if any("--tfgrpo-" in word or word.startswith("@") for word in options.words(config)):
        from pytest_tfgrpo.plugin.start import rootdir

        rootdir.require_unmoved(config)
    options.refuse_repeated(config.invocation_params.args)
    settings = config.stash[options.SETTINGS] = options.read(config)
    gate_ids.bring_suite(config)
    if OTEL.of(settings):  # here, since an error of an xdist worker would come too late
        from pytest_tfgrpo.plugin import prepare

        prepare.open_tracing(config, settings)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say in one line what a learning run is set to."""
    return options.headline(options.settings_of(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Make the session where a baseline is set: its gate fails also if no scenario is left to collect."""
    if BASELINE.of(options.settings_of(session.config)) is not None:
        from pytest_tfgrpo.plugin.session import session_of

        session_of(session.config)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Report that --tfgrpo found no scenario."""
    for line in _unused(config) if exitstatus in ENDED else ():
        terminalreporter.write_line(line)


def _unused(config: pytest.Config) -> Iterable[str]:
    if options.settings_of(config).learning and not config.pluginmanager.hasplugin("tfgrpo-session"):
        suffixes = ", ".join(f"*{suffix}" for suffix in USUAL_SUFFIXES)
        yield (
            f"tfgrpo: no scenario was collected (looked for {suffixes} and the `tfgrpo` marker, "
            "outside the output folder)"
        )
