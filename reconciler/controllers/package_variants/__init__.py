"""Controller of PackageVariants, PackageVariantSets and PackageRevisionSets (`config.porch.kpt.dev`, Porch v1.5).

The controller resolves upstreams, expands sets and creates the mutation steps of each package variant. The renderer
runs the steps later.
"""
