"""Clusters of the fleet and the selection of clusters by rules.

All controllers share these modules. Controllers, and decisions about the content of packages, do not belong here.
"""
