"""Where the loop's events go beside the bus: metrics, warehouse, archive, logs."""
