"""How the tests of captured work run, and whether they prove it."""
