"""Network exceptions of an agent are recognised whatever library raised them, and without importing it."""

import builtins
import subprocess
import sys


def test_nothing_is_imported_to_recognise_them() -> None:
    code = (
        "import sys; from pytest_tfgrpo.actors.network import network_fault; "
        "network_fault(ConnectionError()); "
        "print([m for m in ('httpx', 'requests', 'aiohttp', 'openai', 'ssl', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert builtins.ConnectionError is ConnectionError
