"""The buses that the loop runs on, and its door."""

from support.assemblers import clock, local
from support.bus_places import bus, embedded, nats_server, on_nats, place
from support.intake import intake, opt_outs, scrubber

__all__ = [
    "bus",
    "clock",
    "embedded",
    "intake",
    "local",
    "nats_server",
    "on_nats",
    "opt_outs",
    "place",
    "scrubber",
]
