"""KubeAdmiral's OverridePolicy and ClusterOverridePolicy: changes of single resources for some clusters.

This package reads the policies, selects the rules for a cluster, and applies them to the resources of a package. It
does not render packages and does not decide where they go.
"""
