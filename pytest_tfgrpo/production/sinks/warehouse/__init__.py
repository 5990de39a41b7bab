"""Events in tables of ClickHouse."""
