"""The engine: carries out a job, from the actor's calls to scored groups and revised libraries."""
