"""L2: the harness, from scenario files to the gate's result; no pytest."""
