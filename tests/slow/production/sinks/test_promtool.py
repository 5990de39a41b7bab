"""What Prometheus' own tools say of the metrics, the dashboards, the alerts and their routes."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from support import ROOT
from support.tools import require_tool

from pytest_tfgrpo.production.sinks.dashboards.files import ROUTES, RULES, observing_files
from pytest_tfgrpo.production.sinks.dashboards.panels import PAGES

FILES = observing_files()


def run(tool: str, *args: str, given: str = "") -> str:
    """Run a tool, which has to succeed; returns what it prints."""
    command = [require_tool(tool), *args]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_metrics_pass_the_linter() -> None:
    text = (ROOT / "tests" / "golden" / "loop-metrics.txt").read_text("utf-8")
    assert run("promtool", "check", "metrics", given=text) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_every_expression_of_a_dashboard_is_parsed(page: object, tmp_path: Path) -> None:
    panels = json.loads(FILES[page.file])["panels"]  # type: ignore[attr-defined]
    found = [query["expr"] for panel in panels for query in panel["targets"]]
    rows = [{"record": f"found:{number}", "expr": expr} for number, expr in enumerate(found)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rows}]}))
    assert f"{len(found)} rules found" in run("promtool", "check", "rules", str(tmp_path / "rules.yml"))


def test_the_alerts_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    (tmp_path / RULES).write_text(FILES[RULES])
    assert "SUCCESS" in run("promtool", "check", "rules", str(tmp_path / RULES))
    cases = Path(__file__).with_name("loop-alerts-test.yml").read_text("utf-8")
    (tmp_path / "test.yml").write_text(cases)
    assert "SUCCESS" in run("promtool", "test", "rules", str(tmp_path / "test.yml"))
    tested = {one["alertname"] for case in yaml.safe_load(cases)["tests"] for one in case["alert_rule_test"]}
    rules = yaml.safe_load(FILES[RULES])["groups"][0]["rules"]
    assert tested == {rule["alert"] for rule in rules}


def test_alertmanager_routes_each_severity(tmp_path: Path) -> None:
    file = tmp_path / ROUTES
    file.write_text(FILES[ROUTES])
    assert "SUCCESS" in run("amtool", "check-config", str(file))
    for severity in ("critical", "warning"):
        labels = ("alertname=LoopErrors", f"severity={severity}")
        found = run("amtool", "config", "routes", "test", f"--config.file={file}", *labels)
        assert found.split()[0] == f"loop-{severity}"
