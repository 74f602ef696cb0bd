"""The built-in studies; each is design, analysis and report section."""
