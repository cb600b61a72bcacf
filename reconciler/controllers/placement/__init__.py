"""Controller that copies plain resources from the config to clusters without changes.

The controller reads PropagationPolicies, ClusterPropagationPolicies and the annotation `reconciler.dev/clusters`. It
creates one package for each namespace and cluster. Resources that other controllers read are not copied.
"""
