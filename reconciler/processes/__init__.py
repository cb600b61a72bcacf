"""Runs a process with limits for time, memory and output, for all adapters that start other programs.

`backoff.py` declares the interface of the back-off after a failed call. This package contains no rule about the
programs that may start, and no rule about their input and output.
"""
