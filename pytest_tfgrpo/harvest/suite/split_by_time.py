"""The split of harvested scenarios by time: nothing is learned from the future."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_tfgrpo.core.scenarios import Split

SPLIT_FROM = 40
"""From so many scenarios on, there are a train and a dev split; below, all are eval."""
TRAIN_SHARE, DEV_SHARE = 0.5, 0.2
"""Shares of the oldest scenarios, and of those after them; the rest, the newest, is eval."""


def splits_by_time(
    times: Iterable[tuple[str, int]], present: Mapping[str, str] | None = None
) -> dict[str, Split]:
    """Return the split of each scenario, given as its id and the time of its commit.

    `present` are the splits so far. What was train stays train, and all that is older is train with it; so
    with dev: a scenario that taught once measures nothing later.
    """
    ordered = [id_ for id_, _ in sorted(times, key=lambda one: (one[1], one[0]))]
    count, given = len(ordered), present or {}
    last = {name: max((i for i, id_ in enumerate(ordered) if given.get(id_) == name), default=-1) + 1
            for name in ("train", "dev")}  # fmt: skip
    enough = count >= SPLIT_FROM
    train = max(round(count * TRAIN_SHARE) if enough else 0, last["train"])
    dev = max(round(count * (TRAIN_SHARE + DEV_SHARE)) if enough else 0, last["dev"], train)
    return {id_: "train" if i < train else "dev" if i < dev else "eval" for i, id_ in enumerate(ordered)}
