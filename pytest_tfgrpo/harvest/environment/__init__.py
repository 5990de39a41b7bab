"""Build what tests need, as of a commit's date."""
