"""The command line, with one module per command.

The commands parse arguments, build services, call the other Python packages, and print the result. Code for
reconciling, reviewing and rendering is not in this package.
"""
