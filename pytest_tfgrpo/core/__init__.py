"""Errors, records, stamps, settings, redaction and packaged schemas; no I/O beyond the schemas."""
