"""The workflow that the documentation hands out, run as far as possible: green, red, and a mere warning."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import ROOT
from support.examples import blocks_of
from support.tools import require_tool, run_pytest
from support.workflows import Job, run_job

from pytest_tfgrpo import cli
from pytest_tfgrpo.learning.library.library import empty, save_library

WORKFLOW = ROOT / "docs" / "examples" / "ci.yml"
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
AGENT = """
def solve(context):
    answer = "3" if {right} else "4"
    return {{"answer": answer, "frames": [{{"kind": "model", "name": "m", "cost_usd": {cost}}}]}}
"""


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as the page says: agent, packs, library, baseline, gates and settings are committed."""
    folder = tmp_path_factory.mktemp("committed") / "project"
    assert cli.main(["init", str(folder)]) == 0
    shutil.rmtree(folder / "fixtures")
    (folder / "pyproject.toml").unlink()
    (folder / "suite.scenario.json").write_text(json.dumps([scenario(n) for n in range(120)]))
    save_library(folder / "library.json", empty())
    (folder / "requirements.txt").write_text("pytest-tfgrpo\n")
    employ(folder)
    settings = next(block.text for block in blocks_of(PAGE) if block.language == "ini")
    first = "".join(
        line for line in settings.splitlines(True) if "baseline" not in line and "gates" not in line
    )
    (folder / "pytest.ini").write_text(first)
    assert run_pytest(folder, "--tfgrpo-out=out", "--tfgrpo-min-score=0").returncode == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["baseline", "save", "main"]) == 0
    shutil.rmtree(folder / "out")
    (folder / "pytest.ini").write_text(settings)
    gates = next(b.text for b in blocks_of(PAGE) if b.language == "yaml" and "gates" in b.words)
    (folder / "gates.yaml").write_text(gates)
    return folder


def scenario(n: int) -> dict[str, object]:
    return {
        "id": f"letter-{n}",
        "domain": ("text", "dates")[n % 2],
        "split": "eval",
        "prompt": f"How many words has letter {n}, a b c?",
        "tags": ["smoke"] if n < 4 else [],
        "checks": [{"kind": "exact", "value": "3"}],
    }


IMPERFECT = "int(context.scenario.id[7:]) % 10 != 4"


def employ(folder: Path, right: str = IMPERFECT, cost: float = 0.01) -> None:
    (folder / "agent.py").write_text(AGENT.format(right=right, cost=cost))


@pytest.fixture
def checkout(committed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(committed, tmp_path / "checkout"))


def run(checkout: Path) -> Job:
    require_tool("bash")
    job = run_job(WORKFLOW, "gate", checkout)
    assert all(job.uploaded.values()), job.output
    assert set(job.uploaded) == {"junit.xml", "out/*/runs/*/report.html", "out/*/runs/*/report.json"}
    return job


def outcomes(checkout: Path) -> dict[str, str]:
    """Return what the JUnit file says of each gate."""
    cases = ElementTree.parse(checkout / "junit.xml").getroot().iter("testcase")
    return {
        case.attrib["name"]: next((child.tag for child in case if child.tag != "properties"), "passed")
        for case in cases
        if case.attrib["name"].startswith("gate")
    }


def test_an_imperfect_agent_like_that_of_the_baseline_is_green(checkout: Path) -> None:
    job = run(checkout)
    assert [code for _, code in job.steps] == [0, 0, 0], job.output
    assert set(outcomes(checkout).values()) == {"passed"}
    assert list(outcomes(checkout)) == ["gate[smoke]", "gate[domains]", "gate[price]", "gate"]
    assert job.summary.startswith("## tfgrpo: gate passed\n")
    assert "::error" not in job.output


def test_an_agent_that_got_worse_in_one_domain_is_red(checkout: Path) -> None:
    employ(
        checkout,
        right=f"{IMPERFECT} and (context.scenario.domain == 'text' or int(context.scenario.id[7:]) % 3)",
    )
    job = run(checkout)
    assert [(command.split()[0], code) for command, code in job.steps] == [
        ("pip", 0),
        ("tfgrpo", 0),
        ("pytest", 1),
        ("tfgrpo", 0),
    ], job.output
    found = outcomes(checkout)
    assert (found["gate"], found["gate[domains]"], found["gate[price]"]) == ("failure", "failure", "passed")
    assert job.summary.startswith("## tfgrpo: gate failed\n")
    assert "| domains | fail | baseline \\(dates\\) | **failed** |" in job.summary
    assert "::error title=tfgrpo gate domains::baseline (dates): worse: -0.3" in job.output
    assert "largest regressions" in job.output


def test_an_agent_that_got_dearer_is_green_with_a_warning(checkout: Path) -> None:
    employ(checkout, cost=0.45)
    job = run(checkout)
    assert not job.failed, job.output
    assert outcomes(checkout)["gate[price]"] == "skipped"
    assert "::warning title=tfgrpo gate price::cost per success: $0.5000" in job.output
    assert job.summary.startswith("## tfgrpo: gate inconclusive, with warnings from price\n")


def test_a_pack_that_was_changed_without_review_stops_the_job_before_anybody_is_asked(checkout: Path) -> None:
    with (checkout / "prompt-packs" / "starter" / "system.md").open("a") as file:
        file.write("more")
    require_tool("bash")
    job = run_job(WORKFLOW, "gate", checkout)
    assert [command.split()[0] for command, _ in job.steps[:2]] == ["pip", "tfgrpo"]
    assert job.steps[1][1] == 1
    assert not (checkout / "junit.xml").exists()
