"""Functions that are processes or containers: who may start, with what it is started, and how it is ended.

What a function reads and writes is packages/functions' business; nothing here knows a package.
"""
