"""KubeAdmiral's override policies: the same resource, different where a cluster needs it."""
