"""What an arena came to: sides compared, as sentences, lines, a page and files."""
