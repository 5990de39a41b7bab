"""Commands that let others see the loop, and what the service needs for it."""
