"""The server that leases and states are kept on."""

from support.bus_places import nats_server, on_nats

__all__ = ["nats_server", "on_nats"]
