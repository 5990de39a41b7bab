"""How the tests of a fix run: reviewed, or guessed from a project's own files."""
