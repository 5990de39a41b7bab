"""Replies of servers, read strictly."""
