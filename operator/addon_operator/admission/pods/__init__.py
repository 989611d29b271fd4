"""The webhooks for pods: presets are merged, conflicts and unresolved references become Events."""
