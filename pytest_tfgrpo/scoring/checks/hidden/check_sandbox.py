"""What hidden tests need of a machine, bubblewrap and environments: found out before anything is paid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_tfgrpo.core.errors import CheckError, ScenarioError, SettingError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.permissions import CHECK_SANDBOX
from pytest_tfgrpo.sandbox.programs.environments import find_built
from pytest_tfgrpo.scoring.checks.hidden.hidden_archives import suite_folder
from pytest_tfgrpo.scoring.runners.isolation import require_isolation


def require_checks(settings: Mapping[str, object], scenarios: Sequence[Scenario]) -> None:
    """Raise SettingError where checks cannot run here: no bubblewrap, or an environment is not built.

    Raises ScenarioError where hidden tests have no workspace to run in.
    """
    chosen = CHECK_SANDBOX.of(settings)
    hidden = [scenario for scenario in scenarios if _hides(scenario)]
    commands = chosen == "bwrap" and any(c.kind == "command" for s in scenarios for c in s.checks)
    if hidden or commands:
        try:
            require_isolation("none" if chosen == "none" else "bwrap")
        except CheckError as error:
            raise SettingError(
                str(error).replace("check_sandbox=bwrap", f"check_sandbox={chosen}")
            ) from error
    for scenario in hidden:
        if scenario.workspace is None:
            raise ScenarioError(
                f"{scenario.source}: #/checks: a check of kind 'tests' needs a workspace; name its archive "
                "as workspace: {archive, sha256}"
            )
    needed = {(suite_folder(s.workspace), s.environment) for s in hidden if s.workspace and s.environment}
    for folder, stamp in sorted(needed):
        find_built(folder, stamp)


def warn_of_checks(settings: Mapping[str, object], scenarios: Iterable[Scenario]) -> list[str]:
    """Return a warning where hidden tests run what agents wrote with nothing around it."""
    if CHECK_SANDBOX.of(settings) != "none" or not any(map(_hides, scenarios)):
        return []
    return [
        "check_sandbox = none: hidden tests run the agents' code as you, with your files and network; "
        "install bubblewrap and remove the setting"
    ]


def _hides(scenario: Scenario) -> bool:
    return any(check.kind == "tests" for check in scenario.checks)
