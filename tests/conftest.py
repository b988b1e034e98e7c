"""Settings of all tests."""

import os
import signal

from hypothesis import settings

# No deadline: a busy machine is no failure. On CI the same examples every time, elsewhere new ones.
settings.register_profile("buropt", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("buropt")

# A job that a script puts in the background ignores Ctrl-C, and so would its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
