"""A key that comes into a run by any road stands in no file, page or output of it."""

import pytest
from support.fake_model import Body, Reply, Serve, refused
from support.plugin.secrets import KEY, agent, found
from support.project import Project
from support.teachers import asked, operation, says

HEAD = f"""
from dataclasses import replace
from pytest_tfgrpo.core.lessons import Experience, Operation, Reward, Support
from pytest_tfgrpo.gate.verdict import RuleResult
from pytest_tfgrpo.protocols import Proposal

KEY = {KEY!r}


class Optimizer:
    name, identity = "mine", {{"version": 1}}

    async def propose(self, context):
        return self.proposal(context)

    def lesson(self, context, text):
        pack = context.packs["text"]
        return Experience(
            id="a" * 16, run_id=context.run_id, task_id=context.task_id, domain="text",
            prompt_pack_id=pack.id, epoch=context.epoch, group_id=context.groups[0].group_id, summary32=text,
            polarity="do", reward=Reward(gt_score=1.0, relative_rank=1.0),
            support=Support(groups=1, rollouts=4), tool_stats=(), stamp_signature=pack.stamp,
            actor=context.actor,
        )


def pytest_tfgrpo_optimizer(spec):
    return Optimizer() if spec == "mine" else None

"""

HOOKS = {
    "a refused lesson": """
def proposal(self, context):
    lesson = self.lesson(context, f"Send {KEY} with each call.")
    return Proposal(operations=(Operation(kind="add", experience=lesson, reason=f"{KEY} worked"),))
""",
    "a lesson refused for its length, and for its form": """
def proposal(self, context):
    lesson = self.lesson(context, f"Send {KEY} " + "word " * 40)
    odd = Operation(kind="remove", targets=(KEY,), reason=KEY)
    return Proposal(operations=(Operation(kind="add", experience=lesson), odd))
""",
    "the reason of a change": """
def proposal(self, context):
    lesson = self.lesson(context, "Count each word once.")
    return Proposal(operations=(Operation(kind="add", experience=lesson, reason=f"{KEY} worked"),))
""",
    "the note and the failures of an optimizer": """
def proposal(self, context):
    return Proposal(note=f"the server said {KEY}", failures={KEY: 1})
""",
    "the error of an optimizer": """
def proposal(self, context):
    raise ValueError(f"401 for {KEY}")
""",
    "the error of an observer": """
def pytest_tfgrpo_rollout(rollout):
    raise OSError(f"401 for {KEY}")
""",
    "the error of a rewarder": """
class Broken:
    name, weight = "broken", 0.5

    def __call__(self, batch):
        raise OSError(f"401 for {KEY}")

def pytest_tfgrpo_rewarders():
    return [Broken()]
""",
    "a section of the report": """
def pytest_tfgrpo_report_section():
    return [f"see {KEY}"]
""",
    "the words of a rule": """
class Rule:
    name = "house rule"

    def judge(self, run, baseline, settings):
        return RuleResult(name=self.name, outcome="fail", message=f"no {KEY}", advice=f"get {KEY}")

def pytest_tfgrpo_gate_rules():
    return [Rule()]
""",
}

AGENTS = {
    "a crash": "raise RuntimeError(f'401 for {KEY}')",
    "an error of the provider": "raise ProviderError(f'401 for {KEY}')",
    "an answer that is none": "return {'answer': {KEY: 1}, KEY: 2}",
    "the name of a tool": "return {'answer': '3', 'frames': [{'kind': 'tool', 'name': KEY}]}",
}
SAID = {
    "an answer": "return f'3 by {KEY}'",
    "the output of a tool": "return frame(output=f'password = {KEY}')",
    "the input of a tool": "return frame(input={'headers': {'key': KEY}})",
    "the error of a tool": "return frame(error=f'401 for {KEY}')",
}


@pytest.fixture
def watched(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    return project.scenarios(train=3, sweep=2)


@pytest.mark.parametrize("road", HOOKS)
def test_a_key_in_what_a_hook_gives_is_nowhere(watched: Project, road: str) -> None:
    source = HOOKS[road]
    watched.conftest(HEAD + source + ("Optimizer.proposal = proposal\n" if "def proposal" in source else ""))
    optimizer = "mine" if "def proposal" in source else "heuristic"
    watched.ini(actor="python:agent:learner", group_size=4, optimizer=optimizer)
    assert found(watched) == []
    assert "[redacted:api_key]" in (watched.runs()[-1] / "report.html").read_text()


def test_a_key_in_what_goes_wrong_in_an_agent_is_nowhere(watched: Project) -> None:
    watched.scenarios(train=1, sweep=len(AGENTS)).agent(agent(AGENTS))
    watched.ini(actor="python:agent2:act", group_size=2, baseline_sweep="off")
    assert found(watched) == []
    failed = {r["scenario_id"]: (r["failure"] or {}).get("code") for r in watched.events("rollout")}
    assert [failed[f"suite-eval{n}"] for n in range(3)] == ["crash", "provider", "garbage"]


def test_what_an_agent_said_is_whole_in_the_journal_alone(watched: Project) -> None:
    watched.scenarios(train=1, sweep=len(SAID)).agent(agent(SAID))
    watched.ini(actor="python:agent2:act", group_size=2, baseline_sweep="off")
    assert found(watched) == ["journal.jsonl"]
    lines = (watched.runs()[-1] / "journal.jsonl").read_text().splitlines()
    for n in range(len(SAID)):
        told = [line for line in lines if f'"scenario_id":"suite-eval{n}"' in line and KEY[3:20] in line]
        assert told


def test_a_key_in_a_prompt_is_on_file_with_its_scenario_alone(project: Project) -> None:
    prompt = f"How many words has '{KEY} {{split}} {{n}}'?"
    project.tasks(prompt=prompt, train=3, eval=2).ini(actor="python:agent:half", group_size=2)
    project.write("summary.md", "")
    assert found(project) == ["journal.jsonl"]


@pytest.mark.parametrize("escaped", [KEY, KEY.replace("-", "\\u002d"), KEY.replace("-", "&#45;")])
def test_a_lesson_of_a_teacher_with_a_key_is_refused_and_nowhere(
    watched: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve, escaped: str
) -> None:
    def answer(body: Body, attempt: int) -> Reply | str:
        if body["model"] != "big":
            return "3" if body["seed"] % 2 else "4"
        lesson = operation(lesson=f"Send {escaped} with each call.", reason=f"{escaped} worked")
        return says(lesson | {"sources": ["P1"]} if "Several tasks" in asked(body) else lesson)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0000000000")
    watched.ini(actor="openai:small", optimizer="llm", teacher="openai:big", group_size=4)
    serve(answer)
    assert found(watched) == []
    assert set(watched.report()["library"]["refused"]) == {"secret"}


def test_a_key_in_the_words_of_a_server_is_nowhere(
    watched: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0000000000")
    watched.ini(actor="openai:small", group_size=2)
    serve(lambda body, attempt: refused(401, f"Incorrect API key provided: {KEY}"))
    assert found(watched) == []
