"""Pure numpy functions; arrays in, arrays out, no records."""
