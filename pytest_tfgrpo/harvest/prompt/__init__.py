"""The prompt of a fix, without its solution and without secrets."""
