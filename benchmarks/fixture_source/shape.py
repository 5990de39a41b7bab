"""The shape of fixture sources: families of tasks, each with wordings, data and its own ground truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Data = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task of a family."""

    wording: str
    """The prompt; ``{name}`` stands for the datum of that name."""
    data: Data
    """Plain values from which the truth is computed; ``file`` names an attachment."""
    fields: Mapping[str, Any]
    """Further scenario fields: tags, tools, input, min_score."""

    @property
    def prompt(self) -> str:
        return self.wording.format_map(self.data)


def case(wording: str, *, tags: Sequence[str] = (), tools: Sequence[str] = (), **data: Any) -> Case:
    """Return a task; a datum called `input` becomes the scenario's input."""
    fields: dict[str, Any] = {"input": data["input"]} if "input" in data else {}
    fields |= {"tools": list(tools)} if tools else {}
    fields |= {"tags": list(tags)} if tags else {}
    return Case(wording=wording, data=data, fields=fields)


@dataclass(frozen=True, kw_only=True)
class Family:
    """Tasks of one kind in one domain."""

    domain: str
    name: str
    chain: tuple[str, ...]
    """Tools that solve it, for the test that every task can be solved; never shipped with the fixtures."""
    truth: Callable[[Data], Any]
    """The right answer, in plain Python, without the agent's tools."""
    checks: Callable[[Any, Data], list[dict[str, Any]]]
    """The checks that a right answer passes."""
    train: Sequence[Case]
    eval: Sequence[Case] = field(default=())
    dev: Sequence[Case] = field(default=())


def exact(answer: Any, _: Data) -> list[dict[str, Any]]:
    """The answer and nothing else."""
    return [{"kind": "exact", "value": str(answer)}]


def number(answer: Any, _: Data) -> list[dict[str, Any]]:
    """A number, within a millionth."""
    return [{"kind": "number", "value": answer, "rel_tol": 1e-6}]
