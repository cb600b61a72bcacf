"""Runners: functions that run as processes or containers, and the process that evaluates Starlark scripts.

This folder decides which programs may start, starts them with limits, and ends them. The format of their input and
output is in `packages.functions`. No module here depends on the content of a package.
"""
