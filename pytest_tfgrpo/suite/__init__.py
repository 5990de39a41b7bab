"""The suite: scenario files, marks and prompt packs as validated, stamped records, and prompts from both."""
