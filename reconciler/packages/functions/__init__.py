"""Built-in KRM functions, selected by image name and version, and the types and formats that all functions use.

Modules with functions are named after their subject, for example `setters` for `apply-setters` and `create-setters`.
Running functions in other processes or containers does not belong here.
"""
