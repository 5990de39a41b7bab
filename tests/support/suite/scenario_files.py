"""What the tests of suite/test_scenario_files.py share with the slow ones."""

from hypothesis import strategies as st

EXACT = {"kind": "exact", "value": "3"}
PLAIN = {"id": "a", "prompt": "p", "checks": [EXACT]}


# -- the fast path


checks = st.sampled_from(
    [
        EXACT, EXACT | {"strip": False, "ignore_case": True}, {"kind": "contains", "values": ["a"]},
        {"kind": "number", "value": 1, "abs_tol": 0.5, "weight": 3}, {"kind": "json", "value": {"a": None}},
        {"kind": "tool_calls", "calls": [{"name": "a", "arguments": {}}], "order": "exact"},
        {"kind": "command", "run": ["a"], "exit_code": 1, "timeout_s": 2}, {"kind": "command", "run": "a b"},
        {"kind": "file", "path": "a", "contains": "b"}, {"kind": "regex", "pattern": "a", "flags": "im"},
    ]
)  # fmt: skip
