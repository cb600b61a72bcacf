"""Runs functions as processes and containers, and Starlark scripts in a separate process.

The code in this folder decides which programs can start, starts them with limits, and ends them. It does not depend on
the content of kpt packages. The module `packages.functions` defines the input and output format of functions.
"""
