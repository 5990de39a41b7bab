"""Commands of what production teaches: datasets and candidates."""
