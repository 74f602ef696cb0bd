"""A study on other hosts: its plan in parts, each run by one host, all in one result."""
