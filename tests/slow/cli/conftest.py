"""The buses that the loop runs on."""

from support.bus_places import embedded, nats_server, on_nats, place

__all__ = ["embedded", "nats_server", "on_nats", "place"]
