"""The command ``tfgrpo loop proxy``: the deployed version in front of a model server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import load_config, open_configured, open_scrubber, warn
from pytest_tfgrpo.cli.loop.serving.open_policy import open_follower
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.service.reports import FirstReports
from pytest_tfgrpo.production.serving.collector import ChatCollector
from pytest_tfgrpo.production.serving.run_proxy import run_proxy

if TYPE_CHECKING:
    from pytest_tfgrpo.production.config import LoopConfig
    from pytest_tfgrpo.production.door.scrubber import LoopScrubber


def proxy(arguments: Arguments) -> Iterator[str]:
    """Pass requests to a model server with the texts of the deployed version (extras serve, openai).

    Prints a line once the proxy answers, and yields one when SIGTERM or Ctrl-C has stopped it.
    """
    config = load_config(arguments.config)
    settings = config.settings.proxy
    if not settings.upstream:
        raise SettingError(
            f"proxy.upstream ({config.origins['proxy.upstream']}): names no model server; set it to the base "
            "URL of one, such as https://models.example/v1"
        )
    with ExitStack() as closing:
        collector = _collector(config, open_scrubber(config), closing) if settings.collect else None
        run_proxy(
            settings,
            open_follower(config, warn),
            collector,
            ready=lambda url: print(f"serving    {url}/v1, upstream {settings.upstream}", flush=True),
        )
    yield "stopped"


def _collector(config: LoopConfig, scrubber: LoopScrubber, closing: ExitStack) -> ChatCollector:
    def open_intake() -> Intake:
        with ExitStack() as unused:
            bus = open_configured(config)
            unused.callback(bus.close)
            intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
            closing.push(unused.pop_all())
        return intake

    return ChatCollector(open_intake, FirstReports(lambda text: warn(scrubber.text(text))).say)
