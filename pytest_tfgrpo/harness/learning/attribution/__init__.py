"""Attribution: what each lesson does, from the training groups whose prompts left it out by chance."""
