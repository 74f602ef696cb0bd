"""Stage 5: terminal text, tables, charts, one self-contained page."""
