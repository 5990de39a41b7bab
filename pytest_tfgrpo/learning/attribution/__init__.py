"""Attribution: the effect of each lesson, from training groups whose prompts left it out at random."""
