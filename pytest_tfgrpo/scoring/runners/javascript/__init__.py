"""Tests in JavaScript: programs of ours around the project's runner, and what they report."""
