"""Controller for plain resources of the config that go to clusters as they are.

It reads KubeAdmiral's PropagationPolicy and ClusterPropagationPolicy and the annotation `reconciler.dev/clusters`, and
builds one package for each namespace and cluster. Resources that other controllers read are not placed.
"""
