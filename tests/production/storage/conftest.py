"""The bus that leases and states are kept on."""

from support.bus_places import bus, embedded
from support.bus_places import embedded as place

__all__ = ["bus", "embedded", "place"]
