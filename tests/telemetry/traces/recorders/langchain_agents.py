"""The toy agent on LangChain's ``create_agent``, which is a graph of LangGraph."""

from typing import Any

from langchain.agents import AgentState, create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph
from langgraph.types import Command
from openinference.instrumentation.langchain import LangChainInstrumentor
from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER


def main() -> None:
    LangChainInstrumentor().instrument(tracer_provider=toy.new_provider(), config=toy.openinference_config())
    toy.report(ask)


def model(name: str) -> ChatOpenAI:
    return ChatOpenAI(
        model=name,
        base_url=f"{toy.URL}/v1",
        api_key="none",
        max_retries=toy.RETRIES,
        streaming=toy.STREAM,
        stream_usage=True,
    )


def researcher() -> Any:
    return create_agent(
        model(INNER), [tool(toy.weather)], system_prompt=toy.SYSTEM_OF_INNER, name="researcher_agent"
    )


@tool
def ask_researcher(input: str) -> str:  # noqa: A002
    """Ask who knows."""
    done = researcher().invoke({"messages": [("user", input)]})
    return str(done["messages"][-1].content)


@tool
def transfer_to_researcher(runtime: ToolRuntime) -> Any:
    """Hand the user over to who knows."""
    told = "You are the researcher."
    said = ToolMessage(told, name="transfer_to_researcher", tool_call_id=runtime.tool_call_id)
    known = [runtime.state["messages"][-1], said]
    return Command(goto="researcher_agent", graph=Command.PARENT, update={"messages": known})


def graph() -> Any:
    tools = {"subagent": ask_researcher, "handoff": transfer_to_researcher}
    used = [tools.get(toy.CASE) or tool(toy.weather)]
    name = "triage" if toy.CASE == "handoff" else "toy"
    outer = create_agent(model(OUTER), used, system_prompt=toy.SYSTEM, name=name)
    if toy.CASE != "handoff":
        return outer
    both = StateGraph(AgentState)
    both.add_node("triage", outer)
    both.add_node("researcher_agent", researcher())
    both.set_entry_point("triage")
    return both.compile(name="toy")


def ask() -> dict[str, Any]:
    asked = {"messages": [("user", toy.ASKED)]}
    with toy.openinference_identity():
        config: Any = {"max_concurrency": 1}
        if toy.STREAM:
            *_, done = graph().stream(asked, config, stream_mode="values")
        else:
            done = graph().invoke(asked, config)
    turns = [message for message in done["messages"] if message.type == "ai"]
    tokens = sum(message.usage_metadata["total_tokens"] for message in turns)
    return {"answer": turns[-1].content, "turns": len(turns), "tokens": tokens}


if __name__ == "__main__":
    main()
