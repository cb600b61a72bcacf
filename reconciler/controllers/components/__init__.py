"""Controller for component types, components and EnvBindings. The kinds follow the OpenChoreo proposal for addons.

The controller compiles definitions and addons, renders each component for its environments, and builds the packages.
The general selection of clusters is in `controllers/clusters`.
"""
