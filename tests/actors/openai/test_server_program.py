"""What is said of a server that does not answer."""

import asyncio

from pytest_tfgrpo.actors.mcp.server_program import SHOWN, ServerProgram


def test_of_long_stderr_the_end_is_shown() -> None:
    async def trouble() -> str:
        program = ServerProgram()
        program._running.stderr = b"starting " + b"x" * SHOWN + b" no such module\n"
        return program.trouble

    found = asyncio.run(trouble())
    assert found.startswith("stderr: x")
    assert found.endswith(" no such module")
