"""No entropy in tests: property tests draw the same examples each time; `tests/fuzz` draws new ones."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, parent=settings.get_profile("default"))
settings.load_profile("steady")
