"""Metrics for Prometheus, which asks the service for them."""
