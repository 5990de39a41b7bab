"""Datasets: which attempts of production a job learns from, and the file that they are written to."""
