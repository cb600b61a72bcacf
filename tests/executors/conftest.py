"""Fixture of this folder: Git commands run in the test process."""

from tests.support.in_process_git.program import git_of_the_module

__all__ = ["git_of_the_module"]
