"""OTLP in its encodings."""
