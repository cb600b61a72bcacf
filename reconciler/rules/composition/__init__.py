"""OpenChoreo's composition: component types of definitions and addons, rendered per environment (openchoreo)."""
