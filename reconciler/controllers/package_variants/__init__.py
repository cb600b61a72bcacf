"""Controller of PackageVariants, PackageVariantSets and PackageRevisionSets (`config.porch.kpt.dev`, Porch v1.5).

It resolves upstreams, expands sets and creates the mutation steps of each variant. It does not render packages.
"""
