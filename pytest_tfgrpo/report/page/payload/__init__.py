"""The data of a page: what its scripts read, within it and beside it."""
