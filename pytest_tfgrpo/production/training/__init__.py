"""From what production shows to policy versions: datasets, training jobs, versions."""
