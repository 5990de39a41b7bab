"""The tables of cheats at hidden tests, with the project that each is written for."""

from support.cheats import EARLY, RUNTIME
from support.cheats_inside import ANSWERS, RUNNERS
from support.fixes import BASE
from support.later_cheats import LATER, RETURNS
from support.quiet_cheats import QUIET_WAYS

IMPORTED = {**BASE, "tests/conftest.py": "import shop.cart\n"}
"""A project whose code is imported before its tests are."""
TABLES = {
    "in tests": (BASE, RUNTIME),
    "before": (IMPORTED, EARLY),
    "by one who knows": (BASE, RUNNERS),
    "put back": (BASE, QUIET_WAYS),
    "later": (BASE, {**LATER, **RETURNS}),
}
"""By a name: files of the project, and the modules in place of shop/cart.py, by what they do."""
EVERY_TABLE = {**TABLES, "answers alone": (BASE, ANSWERS)}
