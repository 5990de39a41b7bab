"""Tasks in the format of Harbor: what their files mean, and the scenarios that they become."""
