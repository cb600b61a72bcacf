"""Clusters of the fleet, and the selection of clusters by rules.

All controllers can use these modules. The modules do not decide about the content of packages.
"""
