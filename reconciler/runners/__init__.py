"""Runs functions as processes and containers, and Starlark scripts in a separate process.

This package decides which programs can start, starts them with limits, and ends them. The module `packages.functions`
defines the input and output format of functions. No module of this package depends on the content of a kpt package.
"""
