"""Templates: data with CEL expressions in `${…}`. A template is compiled once and rendered many times.

These modules do not depend on the config objects that contain templates, or on the order in which templates are
rendered.
"""
