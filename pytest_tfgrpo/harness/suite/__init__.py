"""Loading: scenario files, marks and prompt packs to validated, stamped records; prompts from both."""
