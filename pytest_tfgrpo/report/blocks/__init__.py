"""Parts of the report that stand in one order on every surface, a file each."""
