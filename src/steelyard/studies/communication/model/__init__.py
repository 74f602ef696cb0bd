"""Cost models of messages and their rivals."""
