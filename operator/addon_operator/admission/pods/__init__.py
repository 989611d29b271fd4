"""The webhooks for pods: presets are merged, conflicts and unresolved references become Events.

The merge itself is pure, and stands in ``podpreset``; references in ``expansion``.
"""
