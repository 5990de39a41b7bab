"""Training jobs: requests, their queue, and the process that carries one out."""
