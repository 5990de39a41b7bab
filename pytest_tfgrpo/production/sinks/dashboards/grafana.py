"""Dashboards as Grafana reads them."""

from __future__ import annotations

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.sinks.dashboards.panels import DashboardPage, DashboardPanel
from pytest_tfgrpo.production.sinks.prometheus.families import MISSED

SCHEMA_VERSION = 39
"""Of dashboards: that of Grafana 11, which later ones migrate."""
_WIDTH, _HEIGHT = 12, 8
_SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(page: DashboardPage) -> dict[str, Json]:
    """Return a dashboard to import; data source and loop are chosen in it."""
    return {
        "uid": f"tfgrpo-{page.file.removesuffix('.json')}",
        "title": page.title,
        "tags": ["pytest-tfgrpo"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {"list": [_data_source(), _job()]},
        "panels": [_panel(number, one) for number, one in enumerate(page.panels)],
    }


def _data_source() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _job() -> Json:
    query = f"label_values({MISSED.name}, job)"
    return {
        "name": "job",
        "label": "Loop",
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": "job"},
        "refresh": 2,
        "sort": 1,
    }


def _panel(number: int, panel: DashboardPanel) -> Json:
    form = {"format": "heatmap"} if panel.kind == "heatmap" else {}
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                **form,
            }
            for place, query in enumerate(panel.queries)
        ],
    }
