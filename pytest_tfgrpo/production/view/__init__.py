"""A local cache of the streams that can be queried."""
