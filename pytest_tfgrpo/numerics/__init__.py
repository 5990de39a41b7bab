"""L0: pure numpy functions; arrays in, arrays out, no records."""
