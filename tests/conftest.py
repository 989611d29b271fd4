"""Settings of all tests."""

import os

import hypothesis

# Enough to find a slip at once; HYPOTHESIS_PROFILE=thorough looks longer, after a change of what is tested.
hypothesis.settings.register_profile("quick", max_examples=15, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
