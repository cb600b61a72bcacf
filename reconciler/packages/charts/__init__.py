"""The parts of chart rendering that need no program: requests, Chart.yaml, and the files of rendered output.

`reconciler/sources` starts the program `helm`. This package does no I/O.
"""
