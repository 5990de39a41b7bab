"""What a person gets where no scenario could be proven by itself (decision 44)."""

from __future__ import annotations

import re

from pytest_tfgrpo.core.texts.text import block
from pytest_tfgrpo.core.wire.toml_text import toml_text
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.harvest.fixes import FixCandidate, FixValidation, RecipePart
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin

ADVICE = """# {id}

Commit `{commit}` changes tests and sources, but its tests could not be run: {reason}.

Say in {where} how the tests run (`tfgrpo harvest init` writes a
file to start from):

```toml
[folder.{folder}]
runner = "{runner}"    # {runners}, or command
{off}run = {run}    # only for command: it writes JUnit XML to {{report}}
{more}
# env = {{ LANG = "C.UTF-8" }}
```

Then {again}. What is known so far is in
`{id}.scenario.partial.json`; both files go once the scenario is proven.

Changed files with tests:

{tests}

Changed sources:

{sources}
"""


WHERE = "`harvest.toml`, in the root of the repository,"
AGAIN = "run the same `tfgrpo harvest` again with `--retry`"
JOB_AGAIN = "sign it: `tfgrpo learn requeue {job} --scenario FILE --approver YOU --reason TEXT`"
_OF_PYTHON = {
    "runners": "pytest",
    "run": '["make", "test", "REPORT={report}"]',
    "more": """# python = "3.11"
# setup = [["python", "setup.py", "build"]]
# dependencies = ["pytest"]""",
}
_OF_NODE = {
    "runners": "node-test, vitest, jest",
    "run": '["npx", "mocha", "--reporter=xunit", "--reporter-option=output={report}", "{tests}"]',
    "more": """# setup = [["npm", "ci"]]
# files = ["package.json", "package-lock.json"]""",
}
_JAVASCRIPT = re.compile(r".*\.[cm]?[jt]sx?", re.DOTALL)


def manual_advice(
    candidate: FixCandidate, part: RecipePart | None, validation: FixValidation, origin: FixOrigin
) -> str:
    """Return what a person has to do, in Markdown."""
    where, again = WHERE, AGAIN
    if origin.job:
        where, again = "a file such as `harvest.toml`", JOB_AGAIN.format(job=origin.job)
    folder = "." if part is None else part.folder
    runner = "command" if part is None else part.command.runner
    tests = candidate.tests or candidate.protected
    of_node = any(map(_JAVASCRIPT.fullmatch, tests)) and not any(name.endswith(".py") for name in tests)
    return ADVICE.format(
        **(_OF_NODE if of_node else _OF_PYTHON),
        off="" if runner == "command" else "# ",
        id=candidate.id,
        where=where,
        again=again,
        commit=candidate.change.commit,
        reason=block(validation.reason, 500).replace("`", "'"),
        folder=toml_text(folder),
        runner=runner,
        tests=_listed(tests),
        sources=_listed(candidate.sources),
    )


def partial_value(
    candidate: FixCandidate, part: RecipePart | None, validation: FixValidation, domain: str
) -> dict[str, Json]:
    """Return what is known of a scenario that is not proven."""
    return {
        "id": candidate.id,
        "domain": domain,
        "commit": candidate.change.commit,
        "base": candidate.change.base,
        "message": candidate.change.message,
        "reason": validation.reason,
        "tests": list(candidate.tests),
        "protected": list(candidate.protected),
        "sources": list(candidate.sources),
        "recipe": None if part is None else to_wire(part),
        "runs": to_wire(validation.runs),
    }


def _listed(names: tuple[str, ...]) -> str:
    return "\n".join(f"* `{block(name, 300)}`" for name in names) or "* none"
