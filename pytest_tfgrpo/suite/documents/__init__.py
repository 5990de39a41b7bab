"""Documents from hostile text, with the place of each value, and edits of them."""
