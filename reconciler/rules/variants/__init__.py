"""Porch's PackageVariant and PackageVariantSet: fan-out, upstream tracking, context, pipeline edits, injection."""
