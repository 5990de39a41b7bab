"""A Prometheus server on a free port of the loopback, and a folder of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import yaml

from support.tools import require_tool

_READY_S = 100.0


class PrometheusServer:
    """Scrapes a service each second."""

    def __init__(self, folder: Path, target: str, token: str) -> None:
        """`target` is the service's host and port."""
        folder.mkdir()
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["loop-alerts.yml"],
            "scrape_configs": [
                {
                    "job_name": "loop",
                    "authorization": {"credentials": token},
                    "static_configs": [{"targets": [target]}],
                }
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        self._command = [
            require_tool("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        ]
        self._log = folder / "log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, path: str, **values: str) -> Any:
        """Return the data of an answer of its API."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(values)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expr: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series that an expression has now."""
        return [(one["metric"], float(one["value"][1])) for one in self.ask("query", query=expr)["result"]]

    def until(self, found: Callable[[], bool]) -> None:
        """Wait until something is so; an answer that does not come is not."""
        end = time.monotonic() + _READY_S
        while time.monotonic() < end:
            assert self._process.poll() is None, self._log.read_text()
            with suppress(OSError):
                if found():
                    return
            time.sleep(0.1)
        raise AssertionError(f"it never was so; {self.ask('targets')}")
