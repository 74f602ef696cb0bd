"""Linear models of measured values and what R prints of them."""
