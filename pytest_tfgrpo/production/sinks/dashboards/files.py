"""The files that Grafana, Prometheus and its Alertmanager read."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_tfgrpo.production.sinks.dashboards.grafana import dashboard
from pytest_tfgrpo.production.sinks.dashboards.panels import PAGES

RULES, ROUTES = "loop-alerts.yml", "alertmanager.yml"
_HERE = Path(__file__).parent


def observing_files() -> dict[str, str]:
    """Return the files by name: the dashboards, the rules of alerts, and where alerts go."""
    files = {page.file: json.dumps(dashboard(page), indent=2) + "\n" for page in PAGES}
    return files | {name: (_HERE / name).read_text("utf-8") for name in (RULES, ROUTES)}
