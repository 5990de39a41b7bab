"""What a case really was, by the server's log and the framework's own report: never by spans."""

from __future__ import annotations

from typing import Any

from support.traces.recording.stories import ANSWERED, Story, ToyRun

JsonObject = dict[str, Any]


def truth_of(story: Story, log: list[JsonObject], report: JsonObject, agents: dict[str, str]) -> JsonObject:
    """Return the truth of a case; `agents` are the names of the agents by their models.

    `reported` is what the framework says, with ``turns_differ`` or ``tokens_differ`` where that is neither
    what the server has counted for the outer run nor for all runs together.
    """
    said, worked = report["said"], list(report["worked"])
    results = {call: result for line in log for call, result in line["results"].items()}
    by_name = said.pop("results", {})
    for call in (call for line in log for call in line["calls"] if call["name"] in by_name):
        results[call["id"]] = by_name[call["name"]]
    runs = [_run(run, story, log, results, worked, agents) for run in story.runs]
    outer = runs[0]
    outer |= {"question": story.question, "failed": said["error"] is not None}
    outer |= {"answer": "" if outer["failed"] else said["answer"], "cost_usd": said.get("cost_usd")}
    for key, found in (("turns", outer["turns"]), ("tokens", outer["tokens"])):
        if said.get(key) not in (None, found, sum(run[key] for run in runs)):
            said[f"{key}_differ"] = True
    return {
        "content": story.content,
        "session": story.session,
        "user": story.user,
        "requests": len(log),
        "reported": said,
        "runs": runs,
    }


def _run(
    run: ToyRun,
    story: Story,
    log: list[JsonObject],
    results: dict[str, str],
    worked: list[JsonObject],
    agents: dict[str, str],
) -> JsonObject:
    lines = [line for line in log if line["model"] in run.models]
    answered = [line for line in lines if line["status"] == 200]
    calls = [call for line in answered for call in line["calls"]]
    order = [kind for line in answered for kind in ("turn", *("tool" for _ in line["calls"]))]
    failed_turns = int(bool(lines) and lines[-1]["status"] != 200)
    parent = None if run.parent is None else agents[story.runs[run.parent].models[0]]
    asked_by = [call for line in log for call in line["calls"] if line["model"] not in run.models]
    return {
        "agent": agents[run.models[0]],
        "agents": [agents[model] for model in run.models],
        "parent": parent,
        "question": next((str(next(iter(call["arguments"].values()))) for call in asked_by), ""),
        "answer": _answer(answered[-1]) if answered else "",
        "failed": False,
        "turns": len(answered) + failed_turns,
        "tokens": sum(sum(line["usage"]) for line in answered),
        "cost_usd": None,
        "order": order + ["turn"] * failed_turns,
        "tools": [_tool(call, results, worked) for call in calls],
    }


def _answer(line: JsonObject) -> str:
    """Return the text of a reply, or what it gave to the tool that answers."""
    return str(line["text"] or next((call["arguments"].get(ANSWERED, "") for call in line["calls"]), ""))


def _tool(call: JsonObject, results: dict[str, str], worked: list[JsonObject]) -> JsonObject:
    """Return what became of a call: what the tool itself says, and what the model was told."""
    told = results.get(call["id"])
    same = (one for one in worked if (one["name"], one["arguments"]) == (call["name"], call["arguments"]))
    done = next(same, None)
    if done is None:
        told = call["arguments"].get(ANSWERED, told)
        return {**call, "result": told, "error": None, "told": told}
    worked.remove(done)
    return {"id": call["id"], **done, "told": told}
