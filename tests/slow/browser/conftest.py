"""Chromium for tests, and report pages to open in it.

Playwright's event loop runs on the main thread while it is connected, where other tests need none to run: so
Chromium runs as long as the test worker, and Playwright connects to it for one module.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.browser_runs import (
    Open,
    Visit,
    first_run,
    hostile_other,
    hostile_run,
    sample_page,
    second_run,
)
from support.suites import javascript_packages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
ADDRESS = re.compile(r"ws://\S+")
PATIENCE_S = 100.0
"""For all that a test waits for: a machine under load is slow, not wrong."""
WATCH = """
window.__violations = [];
addEventListener("securitypolicyviolation", (event) => window.__violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of Chromium; without it the tests skip, or fail under ``CI_REQUIRE_TOOLS=1``."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        reason = f"NOT TESTED: none of {', '.join(NAMES)} is installed"
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail(reason + ", and CI_REQUIRE_TOOLS=1 demands it")
        pytest.skip(reason)
    options = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"]
    options += ["--no-startup-window", "--disable-background-networking"]  # who connects waits for open tabs
    options += ["--no-sandbox"] if os.getuid() == 0 else []
    profile = tmp_path_factory.mktemp("chromium")
    log = profile / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([path, *options, f"--user-data-dir={profile}"], stderr=output)
    try:
        end = time.monotonic() + PATIENCE_S
        while (found := ADDRESS.search(log.read_text(errors="replace"))) is None:
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < end, f"Chromium did not start within {PATIENCE_S} s"
            time.sleep(0.05)
        yield found[0]
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return Chromium, which runs as long as the test worker."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(chromium, timeout=PATIENCE_S * 1000)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Return a function that opens a page, by path or address, in a context of its own."""
    contexts = []

    def open_page(path: Path | str, fragment: str = "", **options: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}} | options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_S * 1000)
        context.add_init_script(WATCH)
        visit = Visit(context.new_page())
        own = path if isinstance(path, str) else path.as_uri()

        def asked(request: Request) -> None:
            if request.url.partition("#")[0] != own:
                visit.requests.append(request.url)

        def told(kind: str, text: str) -> None:
            if kind in ("error", "warning"):
                visit.messages.append(text)

        context.on("request", asked)
        visit.page.on("console", lambda message: told(message.type, message.text))
        visit.page.on("pageerror", lambda error: told("error", str(error)))
        visit.page.goto(own + fragment)
        return visit

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of ``report.html``, ``compare.html``, ``several.html`` and ``hostile.html``."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "report.html").write_text(sample_page(second_run()), encoding="utf-8")
    (folder / "compare.html").write_text(sample_page(second_run(), first_run()), encoding="utf-8")
    several = sample_page(hostile_run(), hostile_other(), first_run())
    (folder / "several.html").write_text(several, encoding="utf-8")
    (folder / "hostile.html").write_text(sample_page(hostile_run()), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for screenshots: below ``CI_ARTEFACTS`` where that is set, so that CI keeps them."""
    kept = os.environ.get("CI_ARTEFACTS")
    folder = Path(kept) / "screenshots" if kept else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core."""
    packages = javascript_packages()
    if packages is None:
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail("NOT TESTED: axe-core is not installed, and CI_REQUIRE_TOOLS=1 demands it")
        pytest.skip("NOT TESTED: axe-core is not installed; npm install it as .ci/run does")
    return (packages / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
