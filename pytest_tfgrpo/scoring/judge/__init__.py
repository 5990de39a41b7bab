"""The judge: a language model that scores rollouts by a scenario's rubric."""
