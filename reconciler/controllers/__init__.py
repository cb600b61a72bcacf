"""Controllers: each controller converts one family of API kinds into package variants.

The modules in this folder are shared by all controllers: the result types, validation of fields, deletion guards,
provenance and caches. A controller does not import another controller. Planning reads only `results`.
"""
