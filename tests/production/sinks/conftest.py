"""The buses that the loop runs on."""

from support.assemblers import clock, local
from support.bus_places import embedded

__all__ = ["clock", "embedded", "local"]
