"""Formats findings as text, JSON, SARIF and GitLab Code Quality reports.

The module `krm/findings.py` defines findings, with codes and locations. All other packages create findings.
"""
