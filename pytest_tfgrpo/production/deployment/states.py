"""The states of a version that users meet, or have met, and the event that each transition owes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pytest_tfgrpo.core.events import MODEL_DEPLOYED
from pytest_tfgrpo.storage.states import StateTable

DeployState: TypeAlias = Literal["validated", "rejected", "canary", "held", "live", "retired", "rolled_back"]
DeployTrigger: TypeAlias = Literal[
    "start", "override", "advance", "hold", "resume", "finish", "roll_back", "retire", "restore"
]
"""``override``: a person starts what its validation does not let start; ``restore``: by a rollback."""
DEPLOYMENTS: StateTable[DeployState, DeployTrigger] = StateTable(
    {
        ("validated", "start"): ("canary", MODEL_DEPLOYED),
        ("retired", "start"): ("canary", MODEL_DEPLOYED),
        ("rolled_back", "start"): ("canary", MODEL_DEPLOYED),
        ("validated", "override"): ("canary", MODEL_DEPLOYED),
        ("rejected", "override"): ("canary", MODEL_DEPLOYED),
        ("retired", "override"): ("canary", MODEL_DEPLOYED),
        ("rolled_back", "override"): ("canary", MODEL_DEPLOYED),
        ("canary", "advance"): ("canary", MODEL_DEPLOYED),
        ("canary", "hold"): ("held", MODEL_DEPLOYED),
        ("held", "hold"): ("held", MODEL_DEPLOYED),
        ("held", "resume"): ("canary", MODEL_DEPLOYED),
        ("canary", "finish"): ("live", MODEL_DEPLOYED),
        ("canary", "roll_back"): ("rolled_back", MODEL_DEPLOYED),
        ("held", "roll_back"): ("rolled_back", MODEL_DEPLOYED),
        ("live", "roll_back"): ("rolled_back", MODEL_DEPLOYED),
        ("live", "retire"): ("retired", MODEL_DEPLOYED),
        ("retired", "restore"): ("live", MODEL_DEPLOYED),
    }
)
