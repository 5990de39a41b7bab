"""When an item fails, and the text of its failure."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from types import ModuleType
from typing import NoReturn

import pytest

from pytest_tfgrpo.core.records import CheckerResult, Group, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import TABLE, is_gated
from pytest_tfgrpo.engine.request import out_folder
from pytest_tfgrpo.plugin.categories import Apart
from pytest_tfgrpo.plugin.start.options import settings_of

TOLD = pytest.StashKey[dict[str, str]]()
"""The first item with each error message: a thousand items may fail for one wrong key."""


UNRUN = pytest.StashKey[str]()
"""The first item that did not run where no gate fails for it."""
TOOK_S = pytest.StashKey[float]()
"""Seconds that the rollouts of an item took, one after the other."""
ABOUT = pytest.StashKey[Callable[[], str]]()
"""Returns what to show of the rollout of a marked test function beside the function's own failure."""


class ItemFailed(Exception):
    """An item failed; the text is for the reader of the failure, `reason` says it in one line."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason or text.partition("\n")[0]


class MarkedFailed(pytest.fail.Exception):  # type: ignore[name-defined,misc]
    """An item of a marked test function failed; the text is whole, `reason` says it in one line."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, pytrace=False)
        self.reason = reason


class InOtherProcess(pytest.fail.Exception):  # type: ignore[name-defined,misc]
    """An item is about to run in another process than its run."""


def rerun_command(config: pytest.Config, node_id: str) -> str:
    """Return the command that runs an item again."""
    settings = settings_of(config)
    words = ["--tfgrpo"] if settings.learning else []
    for setting in TABLE:
        if settings.origins.get(setting.name, "").startswith("flag"):
            value = settings[setting.name]
            words.append(f"{setting.flag}={'none' if value is None else value}")
    return shlex.join(["pytest", *words, node_id])


class ItemNotRun(ItemFailed):
    """The run ended before an item's scenario was through."""


def end_unrun(item: pytest.Item, unrun: ItemNotRun) -> NoReturn:
    """End an item that did not run: it is skipped, for the gate fails; without a gate the first one fails."""
    if is_gated(settings_of(item.config)) or item.config.stash.setdefault(UNRUN, item.nodeid) != item.nodeid:
        pytest.skip(str(unrun))
    pytest.fail(str(unrun), pytrace=False)


def judge_group(
    config: pytest.Config,
    scenario: Scenario,
    group: Group | None,
    node_id: str,
    *,
    why: str,
    least: float | None = None,
) -> None:
    """Raise ItemFailed if a group makes its item fail.

    It does if all of it errored, and in a sweep below the `min_score` of the scenario, or below `least` where
    the scenario sets none. ItemNotRun: there is no group; `why` says why.
    """
    if group is None:
        raise ItemNotRun(f"{scenario.id} did not run to the end: {why}")
    mean = group.gt_mean
    least = least if scenario.min_score is None else scenario.min_score
    if mean is None or (least is not None and group.mode not in ("train", "dev") and mean < least):
        texts, recorded = _texts(), _is_recorded(config)
        why = texts.reason(scenario, group)
        fault = group.rollouts[0].failure
        if mean is None and fault is not None and recorded:
            first = config.stash.setdefault(TOLD, {}).setdefault(f"{fault.code}: {fault.message}", node_id)
            if first != node_id:
                raise ItemFailed(texts.failure_again(scenario, group, first), why)
        command = rerun_command(config, node_id)
        raise ItemFailed(texts.failure(scenario, group, command, least=least, recorded=recorded), why)


def fail_marked(
    item: pytest.Item, scenario: Scenario, rollout: Rollout, why: str, error: Exception | None
) -> NoReturn:
    """Fail the item of a marked test function with its own `error`, if it looked at an answer, or with `why`.

    Either shows the rollout: prompt, answer, how to run it again.
    """

    def about() -> str:
        command, recorded = rerun_command(item.config, item.nodeid), _is_recorded(item.config)
        lines = _texts().about(scenario, rollout, command, recorded=recorded)
        return "\n".join([*lines, *_late(item, rollout)])

    if rollout.status != "ok":
        why = _texts().fault(rollout)
    elif error is not None:  # its own traceback says what it asserted
        item.stash[ABOUT] = about
        raise error
    raise MarkedFailed(f"{why}\n{about()}", why)


def _late(item: pytest.Item, rollout: Rollout) -> list[str]:
    """Return a hint where a marked test patches what the agent, which failed before, may have needed."""
    mark = item.get_closest_marker("tfgrpo")
    named = mark is not None and mark.kwargs.get("fixtures")
    patches = sorted({"mocker", "monkeypatch"}.intersection(getattr(item, "fixturenames", ())))
    if rollout.status == "ok" or named or not patches:
        return []
    return [
        f"the agent ran before the body of this function, which uses {' and '.join(patches)}: patch in a "
        "fixture, and name it in the mark, fixtures=[...]"
    ]


def _texts() -> ModuleType:
    """Return what writes of a failure; a run without one does not load it."""
    from pytest_tfgrpo.report import rollout

    return rollout


def _is_recorded(config: pytest.Config) -> bool:
    return out_folder(config.rootpath, settings_of(config)) is not None


def report_low(score: float, least: float) -> NoReturn:
    """End the item as below: its score is below `least`, and a gate decides on the mean."""
    raise Apart("below", f"score {score:.3f} is below min_score = {least:g}; the gate decides")


def note_group(item: pytest.Item, group: Group) -> None:
    """Put a group's figures into the item's junit properties, and its time into the item's duration."""
    latencies = [rollout.latency_ms for rollout in group.rollouts]
    item.stash[TOOK_S] = sum(latencies) / 1000
    item.user_properties += [
        ("tfgrpo_group", group.group_id),
        ("tfgrpo_epoch", group.epoch),
        ("tfgrpo_mode", group.mode),
        ("tfgrpo_n", sum(score.gt_score is not None for score in group.scores)),
        ("tfgrpo_errors", sum(rollout.status == "error" for rollout in group.rollouts)),
        ("tfgrpo_gt_mean", group.gt_mean),
        ("tfgrpo_latency_ms", round(sum(latencies) / len(latencies), 3)),
    ]


def note_rollout(item: pytest.Item, rollout: Rollout, checker_result: CheckerResult) -> None:
    """Put a judged rollout's figures into the item's junit properties, and its time into its duration."""
    item.stash[TOOK_S] = rollout.latency_ms / 1000
    score = checker_result.score if checker_result.outcome == "score" else None
    item.user_properties += [
        ("tfgrpo_rollout", rollout.rollout_id),
        ("tfgrpo_score", score),
        ("tfgrpo_latency_ms", rollout.latency_ms),
    ]
