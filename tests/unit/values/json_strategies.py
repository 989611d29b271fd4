"""Random JSON documents with few keys, so that patches often hit."""

from typing import Any

from hypothesis import strategies as st

SCALARS = st.sampled_from([None, False, True, -3, -1, 0, 1, 2, "", "x", "yes", "017"])
KEY_NAMES = ("a", "b", "0", "1", "list")
KEYS = st.sampled_from(KEY_NAMES)


def _collections(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)


VALUES = st.recursive(SCALARS, _collections, max_leaves=6)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
