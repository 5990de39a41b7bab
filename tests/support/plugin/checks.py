"""What the tests of plugin/test_checks.py share with the slow ones."""

CHECKS = {
    "exact": {"value": '{"n": 3}'},
    "contains": {"value": '"n"'},
    "regex": {"pattern": r"\d"},
    "number": {"value": 3.0001, "abs_tol": 0.001},
    "math": {"value": "6/2"},
    "json": {"value": {"n": 3}},
    "json_schema": {"schema": {"type": "object", "required": ["n"]}},
    "tool_calls": {"calls": [{"name": "count", "arguments": {"n": 3}}]},
    "file": {"path": "out.txt", "pattern": "total 3"},
    "command": {"run": "grep -q 3 out.txt"},
    "limits": {"steps": 1},
    "similar": {"value": '{"n": 4}', "min": 0.8},
    "python": {"target": "judges:judge"},
    "tests": {
        "runner": "pytest",
        "hidden": "hidden.tar.gz",
        "fail_to_pass": ["tests/test_out.py::test_out"],
    },
}
