"""The feedback loop: what users, tests and judges say of production runs, as rewards."""
