"""An openai actor over a scripted model."""

from support.openai_actor.fixtures import bench, memory

__all__ = ["bench", "memory"]
