"""What calls may cost, and how many run at once: budgets, places, waits."""
