"""L2: the harness, from scenario files to a verdict; imports ``core`` and ``numerics`` only."""
