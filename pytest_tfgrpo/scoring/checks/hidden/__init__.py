"""Hidden tests: the check ``tests``, and the tree that it runs on."""
