"""Dashboards of Grafana, and Prometheus' alerts, about the metrics of the loop."""
