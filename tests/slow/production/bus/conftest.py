"""The buses that the contract holds for."""

from support.bus_places import bus, embedded, nats_server, on_nats, place

__all__ = ["bus", "embedded", "nats_server", "on_nats", "place"]
