"""Words and values as a message names them."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 120
"""Characters of a value that a message shows."""

OTHERS = {
    "expected": (
        "answer", "expected_answer", "expected_output", "ground_truth", "ideal", "output", "reference",
        "reference_output", "target",
    ),
    "prompt": ("instruction", "messages", "problem", "query", "question", "task", "user_input"),
    "checks": ("assert", "assertions", "asserts", "evaluators", "metrics", "scorer", "scorers"),
    "kind": ("metric", "scorer", "type"),
    "exact": ("equal", "equals", "exact_match", "match"),
    "contains": ("icontains", "includes"),
    "json_schema": ("is-json", "is_json"),
    "tool_calls": ("called", "tool", "tool_called", "tool_call"),
    "python": ("function", "javascript"),
    "runs": ("list", "ls"),
    "run": ("eval", "evaluate"),
    "actor": ("agent", "agents", "model", "provider", "providers"),
    "scenarios": ("cases", "data", "dataset", "df", "examples", "suite", "tests"),
    "eval_rollouts": ("n", "repeat", "repeats", "rollouts", "samples"),
    "budget_usd": ("budget", "max_budget", "max_cost"),
    "tools": ("mcp", "mcp_config", "mcp_server", "mcp_servers"),
    "mocks": ("fakes", "mock", "mock_tools", "stub", "stubs", "tool_mocks"),
    "returns": ("output", "result", "return", "return_value", "value"),
    "raises": ("error", "exception", "side_effect"),
    "calls": ("called",),
    "forbidden": ("never", "not_called"),
    "arguments": ("args", "input", "kwargs", "parameters"),
    "frames": ("steps", "tool_calls", "tools", "tools_called"),
    "check": ("lint", "validate", "verify"),
    "models": ("cost", "costs", "price", "prices", "pricing"),
    "input": ("input_cost_per_token", "input_price", "prompt"),
    "output": ("completion", "output_cost_per_token", "output_price"),
}  # fmt: skip
"""Words of other tools, by the word for the same thing here."""


def short(value: object, limit: int = SHOWN) -> str:
    """Return the repr of `value`, cut to about `limit` characters."""
    try:
        text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply"
    return text if len(text) <= limit + 2 else text[:limit] + "..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the known word for the same thing as `word`, or the nearest; else empty."""
    import difflib  # for a message alone

    listed = list(known)
    found = same_thing(word, listed) or next(iter(difflib.get_close_matches(word, listed, 1)), None)
    return f"; did you mean {found!r}?" if found else ""


def same_thing(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is for the thing that other tools call `word`."""
    meant = {word.lower(), word.lower().replace("-", "_")}
    return next((ours for ours in known if meant.intersection(OTHERS.get(ours.replace("-", "_"), ()))), None)


def phase_label(epoch: int, mode: str, dev_sweep: int = 0) -> str:
    """Return the name of a phase: ``early``, ``baseline``, ``placebo``, ``epoch1-dev2``, ``epoch3-eval``."""
    suffix = f"-{mode}" if mode in ("eval", "evidence") else f"-dev{dev_sweep}" if dev_sweep else ""
    return mode if mode in ("early", "baseline", "placebo") else f"epoch{epoch}{suffix}"
