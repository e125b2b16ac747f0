"""Tests are deterministic: hypothesis draws the same each time, and no test is judged by the clock."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")
