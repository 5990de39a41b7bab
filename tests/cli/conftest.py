"""The buses that the loop runs on."""

from support.bus_places import embedded
from support.bus_places import embedded as place

__all__ = ["embedded", "place"]
