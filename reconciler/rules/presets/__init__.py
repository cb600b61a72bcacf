"""Plugin presets: one plugin configuration for many clusters, and all that may change it on its way (greenhouse 1)."""
