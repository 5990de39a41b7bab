"""One attempt: what surrounds it, how it ends, and whose fault that was."""
