"""The bus of the embedded kind; that on a server is for the slow tests."""

from support.bus_places import bus, embedded
from support.bus_places import embedded as place

__all__ = ["bus", "embedded", "place"]
