"""Findings: what makes a comparison of splits less reliable, in words and for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json, to_wire

OverlapKind: TypeAlias = Literal[
    "same_task",
    "same_prompt",
    "similar",
    "paraphrase",
    "answer_in_pack",
    "answer_in_lesson",
    "answer_in_prompt",
]
LISTED = 20
"""Findings that are listed; the rest are counted."""
EXCERPT = 60

_WORDS: Mapping[OverlapKind, str] = {
    "same_task": "ask the same, except for case and typography",
    "same_prompt": "have the same prompt, except for case and typography, and one has no data of its own",
    "similar": "are {similarity:.0%} alike in wording, with the same numbers",
    "paraphrase": "want the same answer about the same data, in other words",
    "answer_in_pack": "has its answer in",
    "answer_in_lesson": "has its answer in",
    "answer_in_prompt": "has its answer in the prompt of",
}
_APART = "set the same split for both (or the same family, if no split is set), or remove one"
_ADVICE: Mapping[OverlapKind, str] = {
    "same_task": _APART,
    "same_prompt": _APART,
    "similar": _APART,
    "paraphrase": _APART,
    "answer_in_pack": "take it out of the pack, or remove the scenario",
    "answer_in_lesson": "remove the lesson from the library, or the scenario from the suite",
    "answer_in_prompt": "take it out of the prompt, or set the same split for both scenarios",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Two things that should have nothing in common, and what they have."""

    kind: OverlapKind
    subject: str
    """Scenario, by id and split."""
    where: str
    """Its ``file:line``."""
    other: str
    """The other scenario by id and split, the prompt pack, or the lesson."""
    other_where: str = ""
    """Its ``file:line``, where it has one."""
    similarity: float = 1.0
    """In (0, 1]; 1 for what is the same."""
    excerpt: str = ""
    """Start of the prompt, or the answer."""
    more: int = 0
    """Further scenarios of which the same is true."""

    def __str__(self) -> str:
        """Return the finding in one line, with what to do."""
        told = _WORDS[self.kind].format(similarity=self.similarity)
        what = f"{self.subject} ({self.where})"
        other = f"{self.other} ({self.other_where})" if self.other_where else self.other
        more = f" and {self.more} more" if self.more else ""
        if self.kind.startswith("answer"):
            return f"{what} {told} {other}: {self.excerpt!r}; {_ADVICE[self.kind]}"
        return f"{what} and {other}{more} {told}: {self.excerpt!r}; {_ADVICE[self.kind]}"


def called(scenario: Scenario) -> str:
    """Return a scenario's id and split."""
    return f"{line(scenario.id, 80)} [{scenario.split}]"


def excerpt(text: str) -> str:
    """Return the start of a foreign text on one line."""
    return line(" ".join(text[: 4 * EXCERPT].split()), EXCERPT)


def complaint(findings: Sequence[Finding]) -> str:
    """Return the message of an error: every finding up to LISTED on a line of its own, and what to do."""
    lines = [f"contamination: {len(findings)} found; results on such splits are less reliable than they look"]
    lines += [f"  {finding}" for finding in findings[:LISTED]]
    if len(findings) > LISTED:
        lines.append(f"  and {len(findings) - LISTED} more")
    return "\n".join([*lines, "to run anyway, with a warning in the report, set contamination = warn"])


def found_value(findings: Sequence[Finding]) -> Json:
    """Return findings as the report carries them; the first LISTED in full."""
    return {
        "found": len(findings),
        "kinds": dict(sorted(Counter(finding.kind for finding in findings).items())),
        "findings": [{**to_wire(finding), "text": str(finding)} for finding in findings[:LISTED]],
    }
