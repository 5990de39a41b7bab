"""An evaluator in a process of its own, to be killed: ``python -m support.evaluating BUS VIEW OWNER``."""

import sys
import time
from pathlib import Path

from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.view.view import LoopView


def main(spec: str, view: str, owner: str) -> None:
    evaluator = Evaluator(open_bus(spec), LoopView(Path(view)), owner, ttl_s=0.3)
    print("ready", flush=True)
    while True:
        if not evaluator.step():
            time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
