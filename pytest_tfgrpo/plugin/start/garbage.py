"""Python's garbage collector: it need not trace what lives as long as a session of scenarios alone.

Modules, items and scenarios are most of what a full collection looks at, and one takes 20 to 30 ms with them.
pytest makes five at the end of a session, and the interpreter some more at its own end.
"""

from __future__ import annotations

import atexit
import gc
from contextlib import ExitStack

from pytest_tfgrpo.core.python.collector import collecting_seldom


def spare_lasting() -> ExitStack:
    """Let collections pass over all objects that live now, and run seldom, until what is returned is closed.

    Those at the end of the interpreter pass over them too. For a session without tests of the user: theirs
    may ask the collector about its objects. Nothing is done in a process that has frozen objects of its own.
    """
    undo = ExitStack()
    if gc.get_freeze_count():
        return undo
    gc.freeze()
    undo.callback(gc.unfreeze)
    undo.enter_context(collecting_seldom())
    atexit.unregister(gc.freeze)  # one is enough, however often pytest runs in this process
    atexit.register(gc.freeze)
    return undo
