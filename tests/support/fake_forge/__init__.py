"""Fake forges with real bare repositories.

`core` contains the behavior of all forges, `server` serves a forge over HTTP. Each other module implements the API of
one product: its paths, fields and refusals as documented. It refuses all other requests.
"""
