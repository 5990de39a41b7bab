"""What outlasts a process: databases of SQLite, leases and states."""
