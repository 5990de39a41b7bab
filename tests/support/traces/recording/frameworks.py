"""The frameworks that are recorded: packages, cases, and how each spells what the model asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.traces.recording.stories import Spelling

SIMPLE = ("one-tool", "parallel", "retry", "stream", "tool-raises", "dead", "session", "no-content")
AGENTS = ("subagent", "handoff")
SDK = "opentelemetry-sdk==1.45.2"


@dataclass(frozen=True)
class Framework:
    script: str
    """Of the folder ``recorders``."""
    tracer: str
    packages: tuple[str, ...]
    cases: tuple[str, ...] = (*SIMPLE, *AGENTS)
    spelling: Spelling = field(default_factory=Spelling)
    agents: tuple[str, str] = ("toy", "researcher")
    """Names of the agent that is asked, and of the one that it asks."""
    environ: dict[str, str] = field(default_factory=dict)


FRAMEWORKS = {
    "openai-agents-openinference": Framework(
        "openai_agents.py",
        "openinference",
        (
            "openai-agents==0.24.0",
            "openai==3.57.0",
            "openinference-instrumentation-openai-agents==2.6.0",
            SDK,
        ),
        (*SIMPLE, *AGENTS, "chat-stream", "web-dead"),
    ),
    "langchain-openinference": Framework(
        "langchain_agents.py",
        "openinference",
        (
            "langchain==1.5.0",
            "langgraph==1.2.22",
            "langchain-openai==1.7.4",
            "openai==3.57.0",
            "openinference-instrumentation-langchain==0.1.80",
            SDK,
        ),
        agents=("toy", "researcher_agent"),
    ),
}
