"""Findings as text, JSON, SARIF and GitLab Code Quality reports.

The findings themselves, with codes and locations, are defined in `krm/findings.py` and created by all other folders.
"""
