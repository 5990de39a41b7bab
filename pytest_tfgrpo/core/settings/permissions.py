"""Settings of what agents and checks may do on this machine, and of what may cost money."""

from __future__ import annotations

from typing import Literal

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import choice, listed_values, parse_bool

# fmt: off
SANDBOX: Setting[Literal["none", "bwrap"]] = Setting("sandbox", "prompts", choice("none", "bwrap"), "none",
    "isolation of the command actor: none, bwrap")
SANDBOX_READABLE = Setting("sandbox_readable", "prompts", listed_values("paths"), None,
    "further files and folders that an agent in the sandbox can read, separated by commas")
SANDBOX_WRITABLE = Setting("sandbox_writable", "prompts", listed_values("paths"), None,
    "files and folders that an agent in the sandbox can also write to")
SANDBOX_ENV = Setting("sandbox_env", "prompts", listed_values("names"), None,
    "names of environment variables that the sandbox passes on")
SANDBOX_NETWORK: Setting[Literal["none", "loopback", "host"]] = Setting(
    "sandbox_network", "prompts", choice("none", "loopback", "host"), "none",
    "network in the sandbox: none, loopback (servers on this machine), host")
SANDBOX_LIMITS = Setting("sandbox_limits", "prompts", listed_values("limits"), None,
    "limits in the sandbox: processes, memory, file_size; for example memory=2GB, file_size=100MB")
CHECK_SANDBOX: Setting[Literal["auto", "bwrap", "none"]] = Setting(
    "check_sandbox", "none", choice("auto", "bwrap", "none"), "auto",
    "isolation of checks: auto (bwrap for tests, none for command), bwrap, none")
ALLOW_PAID = Setting("allow_paid", "none", parse_bool, False,
    "let an actor that costs money run without --tfgrpo", "bool")
