"""The door of the feedback loop: HTTP in, events on the bus, and the loop's roles in threads beside it."""
