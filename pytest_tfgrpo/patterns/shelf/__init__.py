"""The shelf: the files of patterns in a repository, from candidate over active to deprecated."""
