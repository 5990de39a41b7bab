"""What the tests of plugin/test_models.py share with the slow ones."""

from collections.abc import Iterator
from dataclasses import replace

from support import fake_model
from support.fake_model import FakeModel, Reply
from support.project import Project

KEY = "sk-test-SECRET0123456789abcdef"
SPELLINGS = [spelling.encode() for spelling in (KEY, "SECRET0123456789", KEY[::-1])]
ECHO = "you sent KEY, did you not"
PRICED = "prices: {m: {input: 100, output: 1000}}\n"
TOOLS = '''
def lookup(key: str) -> str:
    """Look a word up."""
    return f"{key} means 3"
'''
LOUD = (
    *("--junitxml=out/junit.xml", "--log-file=out/debug.log", "--log-level=DEBUG"),
    *("-rA", "--showlocals", "-vv", "--tfgrpo-record", "out/recording.jsonl"),
)
"""Write and show all that there is."""


def settings(project: Project, **changes: object) -> Project:
    return project.ini(
        **{"actor": "openai:m", "models": "models.yaml", "epochs": 2, "baseline_sweep": "off"} | changes
    )


def echoed(reply: Reply) -> Reply:
    return replace(reply, echo_key=True)


def assert_no_key(project: Project, shown: str) -> None:
    files = [path for path in project.root.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "report.html", "report.json", "journal.jsonl", "recording.jsonl", "junit.xml", "debug.log"
    }  # fmt: skip
    for spelling in SPELLINGS:
        assert spelling not in shown.encode()
        assert [str(path) for path in files if spelling in path.read_bytes()] == []


def used(server: FakeModel) -> Iterator[tuple[int, float]]:
    """Yield tokens and dollars of each request, at the prices of PRICED, as the server counts them."""
    for request in server.requests:
        body = fake_model.completion({"role": "assistant", "content": "3"})
        counts = fake_model.counted(request, body)
        prompt, completion = counts["prompt_tokens"], counts["completion_tokens"]
        yield prompt + completion, (prompt * 100 + completion * 1000) / 1e6
