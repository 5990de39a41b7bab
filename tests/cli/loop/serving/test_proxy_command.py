"""``tfgrpo loop proxy``: what it needs before it serves."""

from pathlib import Path

import pytest
from support.tools import tfgrpo


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    return tmp_path


def test_a_proxy_without_an_upstream_says_what_to_set() -> None:
    said = tfgrpo("loop", "proxy", code=1)
    assert "proxy.upstream (default): names no model server; set it to the base URL of one" in said


@pytest.mark.parametrize(
    "url", ["models.example/v1", "ftp://models.example", "http://key@models.example", "http://"]
)
def test_an_upstream_that_is_no_base_url_is_refused(folder: Path, url: str) -> None:
    (folder / "loop.toml").write_text(f"[proxy]\nupstream = '{url}'\n")
    assert "proxy.upstream must be the base URL of a model server" in tfgrpo("loop", "proxy", code=1)


def test_a_host_that_is_not_here_is_named(folder: Path) -> None:
    text = "[proxy]\nupstream = 'http://127.0.0.1:1/v1'\nhost = '192.0.2.1'\n"
    (folder / "loop.toml").write_text(text)
    assert "cannot listen on port 4319 of '192.0.2.1'" in tfgrpo("loop", "proxy", code=1)
