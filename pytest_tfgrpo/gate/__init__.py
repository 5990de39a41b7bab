"""The gate: baselines, rules, named gates, and when a sweep may end early."""
