"""Commands on finished runs, their lessons, baselines and recordings."""
