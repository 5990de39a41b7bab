"""Files of other tools, and what an import makes of them."""

from support.imports.fixtures import imported

__all__ = ["imported"]
