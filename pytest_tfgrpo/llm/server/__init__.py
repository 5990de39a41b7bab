"""The way to a server: address, key, bytes, and its errors."""
