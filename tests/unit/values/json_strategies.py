"""Random JSON documents with few keys, so that patches often hit."""

from typing import Any

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "yes", "017"])
KEYS = st.sampled_from(["a", "b", "0", "1", "list"])


def _collections(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)


VALUES = st.recursive(SCALARS, _collections, max_leaves=8)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
