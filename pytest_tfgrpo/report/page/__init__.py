"""The report as one self-contained HTML page: readable without scripts, and with them down to every call."""
