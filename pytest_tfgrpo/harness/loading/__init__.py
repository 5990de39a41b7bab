"""Loading: scenario files, marks and prompt packs to validated, stamped records; prompts from both."""

from __future__ import annotations

from pytest_tfgrpo.harness.loading.packs import (
    load_packs,
    pack_folders,
    pack_for,
    packs_in_use,
    stamp_of_pack,
    write_pack_stamp,
)
from pytest_tfgrpo.harness.loading.prompt import merge_experiences, render_prompt
from pytest_tfgrpo.harness.loading.scenario import build_scenario
from pytest_tfgrpo.harness.loading.suite import Suite, load_scenarios, task_key

__all__ = [
    "Suite",
    "build_scenario",
    "load_packs",
    "load_scenarios",
    "merge_experiences",
    "pack_folders",
    "pack_for",
    "packs_in_use",
    "render_prompt",
    "stamp_of_pack",
    "task_key",
    "write_pack_stamp",
]
