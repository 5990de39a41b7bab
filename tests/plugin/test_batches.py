"""Runs whose calls are made in batches, from the user's command to the report."""

import re
from fnmatch import fnmatch

import pytest
from support.preparing import refusal
from support.project import Project

PRICES = "prices: {m: {input: 100, output: 1000}, big: {input: 100, output: 1000}}\n"
MODELS = "endpoints: {default: {retries: 0, batch: {gather_s: 0.1, poll_s: 0.01}}}\n" + PRICES
SETTINGS = {"models": "models.yaml", "epochs": 2, "baseline_sweep": "off", "eval_mode": "separate"}


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    project.write("models.yaml", MODELS)
    return project.ini(actor="openai:m", **SETTINGS).scenarios(train=50, sweep=20)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("batch: 3", "*models.yaml:1: #/endpoints/default/batch: *"),
        ("batch: {gather: 3}", "*#/endpoints/default/batch*gather*"),
        ("batch: {completion_window: soon}", "*#/endpoints/default/batch*"),
        ("batch: true, concurrency: auto", "*#/endpoints/default/concurrency: auto is not for batches*"),
        ("batch: true, hedge_after_s: 3", "*#/endpoints/default/hedge_after_s: is not for batches*"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(suite: Project, options: str, problem: str) -> None:
    said = refusal(suite.write("models.yaml", f"endpoints: {{default: {{{options}}}}}\n"), "--tfgrpo")
    assert any(fnmatch(line, problem) for line in said.splitlines())


def test_a_pool_takes_no_endpoint_with_batches(suite: Project) -> None:
    suite.write("models.yaml", "endpoints: {default: {batch: true}}\npools: {p: [{endpoint: default}]}\n")
    result = suite.learn("--tfgrpo-actor=openai:m@p")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*#/pools/p/0/endpoint: endpoint 'default' makes its calls in batches*"])


def test_a_dry_run_counts_with_the_price_of_batches(suite: Project) -> None:
    def figures() -> list[float]:
        result = suite.learn("--tfgrpo-dry-run")
        assert result.ret == 0
        return [float(found) for found in re.findall(r"[$]([0-9.]+)", str(result.stdout))]

    half = figures()
    suite.write("models.yaml", PRICES)
    assert [2 * usd for usd in half] == pytest.approx(figures(), abs=0.02)
    assert half
