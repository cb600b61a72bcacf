"""Patches of addons: where a path leads, what an operation does there, which objects it meets, and who wrote what.

What is patched is plain data, rendered already: neither templates nor schemas are known here (openchoreo 7-9).
"""
