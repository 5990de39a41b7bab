"""Settings of the feedback loop: ``TFGRPO_LOOP_<SECTION>_<KEY>`` before ``[section] key`` of ``loop.toml``.

They are a table of their own, apart from that of pytest (decision 22, amended). Each section belongs to its
room, which has its record and its rows; here is one line of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.assembly.settings import ASSEMBLER_ROWS, AssemblerSettings
from pytest_tfgrpo.production.bus.settings import BUS_ROWS, BusSettings
from pytest_tfgrpo.production.deployment.settings import DEPLOYMENT_ROWS, DeploymentSettings
from pytest_tfgrpo.production.door.settings import PRIVACY_ROWS, PrivacySettings
from pytest_tfgrpo.production.evaluation.settings import EVALUATOR_ROWS, EvaluatorSettings
from pytest_tfgrpo.production.loop_setting import PREFIX, LoopSetting
from pytest_tfgrpo.production.rewards.settings import REWARD_ROWS, RewardSettings
from pytest_tfgrpo.production.service.settings import SERVICE_ROWS, ServiceSettings
from pytest_tfgrpo.production.serving.settings import PROXY_ROWS, ProxySettings
from pytest_tfgrpo.production.sinks.alerts.settings import ALERT_ROWS, AlertSettings
from pytest_tfgrpo.production.sinks.settings import (
    ARCHIVE_ROWS,
    LOG_ROWS,
    WAREHOUSE_ROWS,
    ArchiveSettings,
    LogSettings,
    WarehouseSettings,
)
from pytest_tfgrpo.production.training.settings import TRAINING_ROWS, TrainingSettings
from pytest_tfgrpo.production.view.settings import VIEW_ROWS, ViewSettings

CONFIG_VARIABLE = PREFIX + "CONFIG"
"""Names the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopSettings:
    """The settings of a process by section; a row of `LOOP_TABLE` says what each one does."""

    bus: BusSettings
    service: ServiceSettings
    privacy: PrivacySettings
    rewards: RewardSettings
    assembler: AssemblerSettings
    evaluator: EvaluatorSettings
    training: TrainingSettings
    deployment: DeploymentSettings
    proxy: ProxySettings
    alerts: AlertSettings
    warehouse: WarehouseSettings
    archive: ArchiveSettings
    logs: LogSettings
    view: ViewSettings


_SECTIONS: Mapping[str, tuple[Callable[..., object], tuple[LoopSetting, ...]]] = {
    "bus": (BusSettings, BUS_ROWS),
    "service": (ServiceSettings, SERVICE_ROWS),
    "privacy": (PrivacySettings, PRIVACY_ROWS),
    "rewards": (RewardSettings, REWARD_ROWS),
    "assembler": (AssemblerSettings, ASSEMBLER_ROWS),
    "evaluator": (EvaluatorSettings, EVALUATOR_ROWS),
    "training": (TrainingSettings, TRAINING_ROWS),
    "deployment": (DeploymentSettings, DEPLOYMENT_ROWS),
    "proxy": (ProxySettings, PROXY_ROWS),
    "alerts": (AlertSettings, ALERT_ROWS),
    "warehouse": (WarehouseSettings, WAREHOUSE_ROWS),
    "archive": (ArchiveSettings, ARCHIVE_ROWS),
    "logs": (LogSettings, LOG_ROWS),
    "view": (ViewSettings, VIEW_ROWS),
}
LOOP_TABLE: Mapping[str, LoopSetting] = {row.name: row for _, rows in _SECTIONS.values() for row in rows}
"""By section and key."""


def loop_settings(values: Mapping[str, Any]) -> LoopSettings:
    """Return the settings with values by the names of `LOOP_TABLE`."""
    sections: dict[str, Any] = {
        name: record(**{row.key: values[row.name] for row in rows})
        for name, (record, rows) in _SECTIONS.items()
    }
    return LoopSettings(**sections)
