"""Opening a live store: what is damaged, locked, foreign or newer is refused with advice, and left alone."""

from __future__ import annotations

import subprocess
import sys


def test_records_and_states_load_no_database():
    program = (
        "import sys; from pytest_tfgrpo.production.live import records, states;"
        "from pytest_tfgrpo.production.live.intake import event_json;"
        "sys.exit('sqlite3' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
