"""Fixtures of this folder: Git commands run in the test process, and a registry."""

from tests.support.artifact_servers import registry
from tests.support.in_process_git.program import git_of_the_module

__all__ = ["git_of_the_module", "registry"]
