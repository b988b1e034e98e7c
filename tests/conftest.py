"""Settings of all tests."""

import os

from hypothesis import settings

# No deadline: a busy machine is no failure. On CI the same examples every time, elsewhere new ones.
settings.register_profile("buropt", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("buropt")
