"""Forges for tests: what people see of them is theirs, what they keep is a real bare repository.

`core` is what all forges have in common, `server` serves one over HTTP, and every other module is the wire of one
product: paths, fields and refusals as that product documents them, and a refusal for everything else.
"""
