"""One comparison on several hosts: placed there as parts of one plan, or merged from several results."""
