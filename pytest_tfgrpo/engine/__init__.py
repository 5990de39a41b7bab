"""The engine: runs a job, from the actor's calls to scored groups and revised libraries."""
