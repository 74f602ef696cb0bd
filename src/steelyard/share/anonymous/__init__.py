"""Names, addresses and keys that an anonymous package must not hold."""
