"""Signals that end the command line, and the code it leaves with then."""

# Imported before anything else: each import here is time in which an interruption is still Python's.
from __future__ import annotations

import _signal  # type: ignore[import-not-found]

INTERRUPTED = 130
SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
