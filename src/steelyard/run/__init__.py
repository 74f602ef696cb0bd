"""Stage 2: run a plan, one durable record after the other."""
