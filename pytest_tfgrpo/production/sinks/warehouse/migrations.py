"""The tables of the warehouse, in numbered steps; the table ``migrations`` says which were taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.sinks.rows import KEPT_DAYS
from pytest_tfgrpo.production.sinks.warehouse.clickhouse import ClickHouse

COMMON: Mapping[str, str] = {
    "event_id": "UUID",
    "time": "DateTime64(3, 'UTC')",
    "subject": "LowCardinality(String)",
    "trajectory_ref": "String",
    "session_refs": "Array(String)",
    "user_refs": "Array(String)",
    "data": "String CODEC(ZSTD(3))",
}
"""Columns of every table; the refs are pseudonyms."""
_NAME, _ID = "LowCardinality(String)", "String"
_MAYBE = "Nullable(Float64)"
FACTS: Mapping[str, Mapping[str, str]] = {
    "trajectories": {
        "trajectory_id": _ID, "revision": "UInt32", "agent": _NAME, "domain": _NAME, "model": _NAME,
        "policy_version": _NAME, "task_status": _NAME, "blocked": "Bool", "turns": "UInt32",
        "duration_s": _MAYBE, "tokens": _MAYBE, "cost_usd": _MAYBE,
    },
    "rewards": {
        "trajectory_id": _ID, "reward_id": _ID, "revision": "UInt32", "evaluator": _NAME,
        "total_reward": _MAYBE, "components": "Map(String, Float64)",
    },
    "training": {
        "training_job_id": _ID, "status": _NAME, "trigger_reason": _NAME, "algorithm": _NAME,
        "percent_complete": _MAYBE, "reward_mean": _MAYBE, "holdout_reward": _MAYBE,
        "improvement_over_baseline": _MAYBE, "cost_usd": _MAYBE, "error_code": _NAME,
    },
    "deployments": {
        "deployment_id": _ID, "model_id": _NAME, "state": _NAME, "rollout_strategy": _NAME,
        "traffic_percentage": _MAYBE, "previous_model": _NAME, "deployed_by": _NAME,
        "approval_status": _NAME,
    },
}  # fmt: skip
"""Columns of the facts of each table."""


def _created(table: str) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in {**COMMON, **FACTS[table]}.items())
    return (
        f"CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE = ReplacingMergeTree"
        f" PARTITION BY toMonday(time) ORDER BY event_id TTL toDateTime(time) + INTERVAL {KEPT_DAYS} DAY"
    )


MIGRATIONS: Sequence[tuple[str, ...]] = tuple((_created(table),) for table in FACTS)
"""Statements of each version, from 1 on; one that was killed is taken once more, so each may run twice."""
_VERSIONS = "CREATE TABLE IF NOT EXISTS migrations (version UInt32, at DateTime DEFAULT now())" + (
    " ENGINE = ReplacingMergeTree ORDER BY version"
)


def migrate(server: ClickHouse, migrations: Sequence[tuple[str, ...]] = MIGRATIONS) -> None:
    """Take the steps that are missing; raises StoreError, also for tables of a newer version."""
    server.run(_VERSIONS)
    done = int(server.values("SELECT max(version) FROM migrations")[0])
    if done > len(migrations):
        raise StoreError(
            f"the tables of the warehouse have version {done}, newer than {len(migrations)}, which this "
            "pytest-tfgrpo knows; install the newer one here too"
        )
    for version, statements in enumerate(migrations[done:], done + 1):
        for statement in statements:
            server.run(statement)
        server.run(f"INSERT INTO migrations (version) VALUES ({version})")
