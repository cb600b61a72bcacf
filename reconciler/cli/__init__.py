"""The command line, one module per command.

The commands parse arguments, build services, call the other packages, and print the result. They contain no logic of
reconciling, reviewing or rendering.
"""
