"""The catalogue: an index over result folders, which stay the truth and from which it can be made again."""

from steelyard.catalogue.catalogue import Catalogue
from steelyard.catalogue.entry import Entry, Filter, Page, Verified

__all__ = ["Catalogue", "Entry", "Filter", "Page", "Verified"]
