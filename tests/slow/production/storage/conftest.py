"""The buses that leases and states are kept on."""

from support.bus_places import bus, embedded, nats_server, on_nats

__all__ = ["bus", "embedded", "nats_server", "on_nats"]
