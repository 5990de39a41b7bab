"""Numerals in answers, as people of many countries, scripts and sciences write them."""
