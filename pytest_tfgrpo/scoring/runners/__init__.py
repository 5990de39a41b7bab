"""Test runners: the tests of a project are run isolated, and reported one by one."""
