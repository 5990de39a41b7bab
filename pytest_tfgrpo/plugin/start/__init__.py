"""The start of pytest with this plugin: options, folders, the garbage collector."""
