"""Live RL: runs in production choose among arms, a selector learns from them, a guard stops it.

What learns is the selector, a small table of probabilities for each category of task, never the model.
"""
