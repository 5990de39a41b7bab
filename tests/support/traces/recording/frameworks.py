"""The frameworks that are recorded: packages, cases, and how each spells what the model asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.traces.recording.stories import QUESTION, Spelling

SIMPLE = ("one-tool", "parallel", "retry", "stream", "tool-raises", "dead", "session", "no-content")
AGENTS = ("subagent", "handoff")
ADK = Spelling(
    handoff=("transfer_to_agent", {"agent_name": "researcher"}), ask=("researcher", {"request": QUESTION})
)
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
    """Names of the agent that is asked, and of the one that it asks; empty where nobody named it."""
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
    "pydantic-ai-logfire": Framework(
        "pydantic_agents.py",
        "logfire",
        ("pydantic-ai-slim[openai]==2.68.0", "openai==3.57.0", "logfire==5.4.0", SDK),
        (*SIMPLE, "subagent"),
    ),
    "anthropic-openinference": Framework(
        "anthropic_agents.py",
        "openinference",
        ("anthropic==2.10.0", "openinference-instrumentation-anthropic==3.1.0", SDK),
        SIMPLE,
        agents=("", ""),
    ),
    "anthropic-traceloop": Framework(
        "anthropic_agents.py",
        "traceloop",
        ("anthropic==2.10.0", "opentelemetry-instrumentation-anthropic==0.62.4", SDK),
        SIMPLE,
        agents=("", ""),
    ),
    "smolagents-openinference": Framework(
        "smol_agents.py",
        "openinference",
        (
            "smolagents[openai]==1.26.0",
            "openai==3.57.0",
            "openinference-instrumentation-smolagents==0.1.43",
            SDK,
        ),
        (*SIMPLE, "subagent"),
        Spelling(answer_tool="final_answer", ask=("researcher", {"task": QUESTION})),
    ),
    "litellm-callback": Framework(
        "litellm_agents.py",
        "callback",
        ("litellm==1.110.2", "openai==3.57.0", SDK),
        SIMPLE,
        agents=("", ""),
        environ={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "USE_OTEL_LITELLM_REQUEST_SPAN": "true"},
    ),
    "litellm-openinference": Framework(
        "litellm_agents.py",
        "openinference",
        ("litellm==1.110.2", "openai==3.57.0", "openinference-instrumentation-litellm==0.1.51", SDK),
        SIMPLE,
        agents=("", ""),
        environ={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    "openai-logfire": Framework(
        "openai_clients.py",
        "logfire",
        ("openai==3.57.0", "logfire==5.4.0", SDK),
        tuple(case for case in SIMPLE if case != "no-content"),
        agents=("", ""),
    ),
    "anthropic-logfire": Framework(
        "anthropic_agents.py",
        "logfire",
        ("anthropic==2.10.0", "logfire==5.4.0", SDK),
        tuple(case for case in SIMPLE if case != "no-content"),
        agents=("", ""),
    ),
    "openai-agents-logfire": Framework(
        "openai_agents.py",
        "logfire",
        ("openai-agents==0.24.0", "openai==3.57.0", "logfire==5.4.0", SDK),
        tuple(case for case in (*SIMPLE, *AGENTS, "chat-stream", "web-dead") if case != "no-content"),
    ),
    "llama-index-openinference": Framework(
        "llama_agents.py",
        "openinference",
        (
            "llama-index-core==0.14.25",
            "llama-index-llms-openai-like==0.8.1",
            "openai==2.54.0",
            "openinference-instrumentation-llama-index==4.6.1",
            SDK,
        ),
        spelling=Spelling(handoff=("handoff", {"to_agent": "researcher", "reason": "It knows the weather."})),
    ),
    "google-adk": Framework(
        "adk_agents.py",
        "own",
        ("google-adk==2.13.0", "litellm==1.110.2", "openai==3.57.0"),
        spelling=ADK,
        environ={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    "google-adk-openinference": Framework(
        "adk_agents.py",
        "openinference",
        (
            "google-adk==2.13.0",
            "litellm==1.110.2",
            "openai==3.57.0",
            "openinference-instrumentation-google-adk==1.0.5",
        ),
        spelling=ADK,
        environ={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    "crewai-openinference": Framework(
        "crew_agents.py",
        "openinference",
        ("crewai==1.15.30", "openai==2.54.0", "openinference-instrumentation-crewai==1.1.21", SDK),
        (*SIMPLE, "subagent"),
        Spelling(
            ask=(
                "delegate_work_to_coworker",
                {"task": QUESTION, "context": "A user asks.", "coworker": "researcher"},
            )
        ),
        environ={
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "CREWAI_STORAGE_DIR": "crew",
        },
    ),
}
