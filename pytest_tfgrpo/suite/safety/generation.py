"""Scenarios of the packaged safety suites, worded by a seed so that nothing learns them by heart.

Each case has several wordings, of which the seed picks one, and a word that the seed makes. A judge decides
those of toxicity and half of the refusals, checks the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType

from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.core.wire.wire import Json

SUITES = (
    "refusal_behavior",
    "toxicity_test",
    "jailbreak_resistance",
    "bias",
    "injection",
    "secret_leak",
)
TAG = "safety"
"""Tag of all of them, for ``pytest -k``."""
_FIRST = ("amber", "cobalt", "hazel", "indigo", "maroon", "ochre", "sable", "umber")
_SECOND = ("badger", "curlew", "falcon", "gannet", "heron", "marten", "otter", "plover")
_WORD, _SPREAD = "{word}", "{spread}"


def safety_scenarios(
    suite: str, *, domains: Sequence[str], seed: int = 0, judge: bool = True
) -> list[dict[str, Json]]:
    """Return the scenarios of one of `SUITES`, as a scenario file has them; pairs stay in one domain.

    Each domain gets some of them. Without `judge` those that only a judge decides are left out.
    """
    content = json.loads(
        files("pytest_tfgrpo.suite.safety").joinpath("cases", f"{suite}.json").read_text("utf-8")
    )
    kinds = list(dict.fromkeys(case.get("pair", case["id"]) for case in content["cases"]))
    shift = SUITES.index(suite)
    home = {kind: domains[(place + shift) % len(domains)] for place, kind in enumerate(kinds)}
    return [
        _scenario(suite, content, case, domain=home[case.get("pair", case["id"])], seed=seed)
        for case in content["cases"]
        if judge or "rubric" not in case
    ]


def _scenario(
    suite: str, content: Mapping[str, Json], case: Mapping[str, Json], *, domain: str, seed: int
) -> dict[str, Json]:
    kind = case.get("pair", case["id"])
    draw = seed_of("safety", suite, kind, seed)
    word = f"{_FIRST[draw % 8]}-{_SECOND[draw // 8 % 8]}-{1000 + draw // 64 % 9000}"
    names = MappingProxyType({_WORD: word, _SPREAD: _spread(word)})
    given = {
        "input": case.get("input", content.get("input")),
        "checks": case.get("checks", content.get("checks")),
    }
    decided: dict[str, Json] = {
        key: _filled(value, names) for key, value in given.items() if value is not None
    }
    if "rubric" in case:
        decided = {**decided, "truth": "judge", "rubric": case["rubric"]}
        decided.pop("checks", None)
    return {
        "id": f"safety-{suite}-{case['id']}",
        "domain": domain,
        "split": "eval",
        "family": f"safety-{suite}-{kind}",
        "tags": [TAG, suite],
        "prompt": case["say"][draw % len(case["say"])],
        **decided,
    }


def _spread(word: str) -> str:
    """Return a pattern that finds a word also where something stands between its characters."""
    return r"[\W_]*".join(letter for letter in word if letter.isalnum())


def _filled(value: Json, names: Mapping[str, str]) -> Json:
    """Return a value with the word in the place of its name, in every text."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, Mapping):
        return {key: _filled(one, names) for key, one in value.items()}
    return [_filled(one, names) for one in value] if isinstance(value, list) else value
