"""Controller of override policies: KubeAdmiral's OverridePolicy and ClusterOverridePolicy change resources on clusters.

The controller reads the policies, selects the rules for a cluster, and applies these rules to the resources of a
package. It does not render packages and does not select the clusters of a package. `resource_overrides.py` describes
how to add an overrider.
"""
