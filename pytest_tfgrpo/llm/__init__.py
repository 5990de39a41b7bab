"""Language models: the only way to call one."""
