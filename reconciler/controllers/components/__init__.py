"""Components: controller for component types, components and EnvBindings, after the OpenChoreo proposal for addons.

It compiles definitions and addons, renders each bound component per environment, and builds its packages. Selection of
clusters in general belongs to `controllers/clusters`.
"""
