"""Read a git repository by plumbing alone: changes, trees, and which changes may be fixes."""
