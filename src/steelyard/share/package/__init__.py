"""Packages: what they hold, how they are packed, unpacked and checked."""
