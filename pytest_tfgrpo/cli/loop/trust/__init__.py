"""Commands for who may do what, and for who did."""
