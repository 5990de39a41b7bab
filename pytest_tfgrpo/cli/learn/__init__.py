"""Commands that catch what finished work taught."""
