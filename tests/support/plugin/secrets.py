"""What the tests of plugin/test_secrets.py share with the slow ones."""

import base64
import gzip
import re
from collections.abc import Iterator, Mapping

from support.project import Project

KEY = "sk-proj-Zq8vWn3xKd7LpR2mTb5Yc9"


def found(project: Project, *arguments: str) -> list[str]:
    """Run, and return the names of the files and outputs that hold the key."""
    result = project.pages().learn("-vv", "--junit-xml", "junit.xml", *arguments)
    output = (("stdout", result.stdout.str()), ("stderr", result.stderr.str()))
    files = [path for path in (project.root / "out").rglob("*") if path.is_file()]
    assert {path.name for path in files} > {"journal.jsonl", "report.json", "report.html", "manifest.json"}
    files += [project.root / "junit.xml", project.root / "summary.md"]
    kept = [(path.name, path.read_text()) for path in files]
    page = next(text for name, text in kept if name == "report.html")
    return [name for name, text in (*output, *kept, *chunks(page)) if KEY[3:20] in text]


def chunks(page: str) -> Iterator[tuple[str, str]]:
    """Yield the trajectories that a page holds compressed."""
    packed = re.findall(r'<script type="application/gzip\+base64" id="(chunk-\d+)">([^<]+)<', page)
    assert packed
    for name, data in packed:
        yield name, gzip.decompress(base64.b64decode(data)).decode()


def agent(roads: Mapping[str, str]) -> str:
    """Return an agent that takes a road in each scenario, by the number at the end of its id."""
    taken = "".join(
        f"    if context.scenario.id.endswith('{n}'):\n        {body}\n"
        for n, body in enumerate(roads.values())
    )
    return f"""
from pytest_tfgrpo import ProviderError

KEY = {KEY!r}


def frame(**fields):
    return {{"answer": "4", "frames": [{{"kind": "tool", "name": "look"}} | fields]}}


def act(context):
{taken}
"""
