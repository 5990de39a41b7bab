"""Production: what users, tests and judges say of runs there, as rewards; and live RL."""
