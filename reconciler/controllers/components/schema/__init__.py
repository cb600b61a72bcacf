"""Schemas of components: the shorthand notation, its conversion to OpenAPI, and the validation of values.

A schema does not change after its creation, so that its validator can be cached. These modules do not depend on the
config objects that contain schemas.
"""
