"""The table of answers: the form of the last numeral, the answer, the number it is read as."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

UNSURE = "unsure"


class NumeralCase(NamedTuple):
    """One answer; `number` is None where there is none, UNSURE where it cannot be read for certain."""

    form: str
    answer: str
    number: float | str | None


def _case(line: str) -> NumeralCase:
    found = NumeralCase(**json.loads(line))
    return found._replace(number=math.inf) if found.number == "inf" else found


CASES = [_case(line) for line in Path(__file__).with_name("cases.jsonl").read_text("utf-8").splitlines()]
