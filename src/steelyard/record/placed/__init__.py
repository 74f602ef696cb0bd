"""What other hosts recorded: their journals, and the way of these into the ledger."""
