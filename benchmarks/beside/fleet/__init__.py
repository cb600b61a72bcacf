"""Scripts around kustomize and kpt that render and publish a fleet, beside passes of the reconciler."""
