"""What the codes of dead letters mean, and what to do about them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ENCODED = "spans that are not as OTLP has them; check the exporter's version and protocol"
DEAD_CODES: Mapping[str, str] = MappingProxyType(
    {
        "schema": "events that do not fit their schema; correct the field that the letter's pointer names",
        "not_finite": "events with NaN, infinity or a number that is too large; leave such values out",
        "total_mismatch": "rewards whose total is not the weighted mean of the components; correct it",
        "unknown_subject": "events on a subject that the loop does not know; check its spelling",
        "too_large": "events or attributes beyond their limit; send shorter texts",
        "no_trajectory": "feedback or rewards whose trajectory never came; check the trajectory_id",
        "max_deliveries": "events that a consumer could not handle; look at its errors",
        "no_run": "calls of models or tools outside of any run; check that every service exports its spans",
        "incomplete": "runs that lack a span, which was refused; see the other codes",
        "loop": "spans that are their own ancestors; check what sets their parents",
        "bad_id": "spans without trace or span id; check the exporter",
        "bad_text": "spans with a NUL, or half a character, in a text; check what writes the text",
        "malformed": _ENCODED,
        "not_json": _ENCODED,
        "not_protobuf": _ENCODED,
        "outcome_not_a_number": "evaluations without a number; check gen_ai.evaluation.score.value",
        "outcome_out_of_range": "evaluations that are not from 0 to 1; scale them",
    }
)
"""What each code counts, and what to do; in the plural."""
