"""What keeps best-effort commands back: the scheduling class, or a governor in its place."""
