"""The library of lessons: screening, retrieval, and the lesson store."""
