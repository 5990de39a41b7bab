"""Root of the project's own suite: tests write small projects and run pytest in them."""

pytest_plugins = ["pytester"]
