"""What the tests share; nothing else of tests/ is imported."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""


def benchmark(name: str) -> ModuleType:
    """Import a program of benchmarks/, which finds its neighbours."""
    with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        return importlib.import_module(name)
