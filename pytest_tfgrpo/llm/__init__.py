"""Language models: the only door to one."""
