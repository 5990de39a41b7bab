"""What the tests share; nothing else of tests/ is imported."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
