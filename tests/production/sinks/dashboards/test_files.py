"""The dashboards, alerts and routes, held to the metrics that there are."""

import json
import re

import pytest
import yaml

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.tallies import ERRORS
from pytest_tfgrpo.production.report.model_figures import WINDOW
from pytest_tfgrpo.production.sinks.alerts.loop_alerts import STALLED_S
from pytest_tfgrpo.production.sinks.dashboards.files import ROUTES, RULES, observing_files
from pytest_tfgrpo.production.sinks.dashboards.panels import PAGES
from pytest_tfgrpo.production.sinks.prometheus.families import FAMILIES, OF_SOURCE
from pytest_tfgrpo.production.training.triggers.table import DROP

FILES = observing_files()
DASHBOARDS = [page.file for page in PAGES]
EXPORTED = {
    name: set(one.labels) | ({"le"} if name.endswith("_bucket") else set())
    for one in FAMILIES
    for name in (
        [f"{one.name}_{part}" for part in ("bucket", "count", "sum")]
        if one.kind == "histogram"
        else [one.name]
    )
}
OF_PROMETHEUS = {"job", "instance"}


def expressions(name: str) -> list[str]:
    if name == RULES:
        return [rule["expr"] for group in rules()["groups"] for rule in group["rules"]]
    return [query["expr"] for panel in json.loads(FILES[name])["panels"] for query in panel["targets"]]


def rules() -> Json:
    return yaml.safe_load(FILES[RULES])


def test_there_are_four_dashboards_that_fit_the_schema() -> None:
    found = [json.loads(FILES[name]) for name in DASHBOARDS]
    assert [one["title"] for one in found] == [
        "RL Training Overview",
        "Model Performance Comparison",
        "Trajectory Quality Metrics",
        "Reward Distribution",
    ]
    assert [violations("dashboard", one) for one in found] == [[]] * 4
    assert len({one["uid"] for one in found}) == 4
    for one in found:
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in one["panels"]]
        assert len(set(places)) == len(places)


@pytest.mark.parametrize("broken", [{"panels": []}, {"uid": "a b"}, {"refresh": "soon"}])
def test_the_schema_refuses_what_grafana_would(broken: dict[str, Json]) -> None:
    assert violations("dashboard", {**json.loads(FILES[DASHBOARDS[0]]), **broken})


@pytest.mark.parametrize("name", [*DASHBOARDS, RULES])
def test_every_metric_and_label_of_a_query_is_exported(name: str) -> None:
    found = expressions(name)
    assert found
    for expr in found:
        metrics = re.findall(r"agent_rl_\w+", expr)
        assert metrics, expr
        labels = set[str]().union(*(EXPORTED[one] for one in metrics)) | OF_PROMETHEUS
        used = {word for group in re.findall(r"by \(([^)]*)\)", expr) for word in re.findall(r"\w+", group)}
        used |= {word for group in re.findall(r"\{([^}]*)\}", expr) for word in re.findall(r"(\w+)=", group)}
        assert used <= labels, expr


def test_every_metric_is_shown_or_alerts() -> None:
    text = "".join(expr for name in [*DASHBOARDS, RULES] for expr in expressions(name))
    assert [one.name for one in OF_SOURCE if one.name not in text] == []
    assert [one.name for one in FAMILIES if one.name not in text] == []


def test_services_on_one_bus_are_not_added_up() -> None:
    for name in DASHBOARDS:
        for expr in expressions(name):
            for place in re.finditer(r"(increase\()?agent_rl", expr):
                before = expr[: place.start()]
                assert re.search(r"max(?: by \([^)]*\) )? ?\($", before), expr


def test_the_limits_of_the_alerts_are_those_of_the_loop() -> None:
    by_name = {rule["alert"]: rule["expr"] for group in rules()["groups"] for rule in group["rules"]}
    assert by_name["LoopErrors"].endswith(f"> {ERRORS}")
    assert by_name["LoopModelDegraded"].endswith(f"- {DROP:.2f}")
    assert by_name["LoopTrajectoriesStalled"].endswith(f"> {STALLED_S:.0f}")
    assert sum(str(WINDOW) in FILES[name] for name in DASHBOARDS) == 2


def test_each_severity_has_a_route() -> None:
    routes = yaml.safe_load(FILES[ROUTES])["route"]
    named = {rule["labels"]["severity"] for group in rules()["groups"] for rule in group["rules"]}
    assert named == {"critical", "warning"}
    assert routes["routes"][0]["matchers"] == ['severity="critical"']
    assert routes["receiver"] == "loop-warning"
