"""The command ``tfgrpo view``: pages on loopback, for who knows the token alone."""

import signal
import subprocess
import sys

import pytest
from support import frozen as frozen_projects
from support.frozen import Frozen
from support.project import Project

from pytest_tfgrpo.cli.view_server import HOST

# the command


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    return frozen(frozen_projects.learned)


def test_ctrl_c_ends_the_view_at_once(learned: Project) -> None:
    (learned.runs()[0] / "report.html").unlink()
    program = (
        "import signal, sys; from pytest_tfgrpo.cli import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # which a background job does not have
        "sys.exit(main(['view', '--no-browser']))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        lines = [viewer.stdout.readline() for _ in range(3)]
        assert lines[1].startswith(f"page   http://{HOST}:")
        assert lines[2] == "Ctrl-C ends the view\n"
        viewer.send_signal(signal.SIGINT)
        assert viewer.wait(100) == 130
        assert viewer.stdout.read() == ""
