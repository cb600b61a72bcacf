"""The one step of a placed package: to ask for what it was made of, so that a change is told with its cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.rules.placement.model import Resource
from reconciler.rules.variant import Earlier, Mutated
from reconciler.snapshot.catalog import DEFAULT_NAMESPACE
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

Named = tuple[str, str, str, str]


@dataclass(frozen=True)
class AskForObjects:
    """Asks for the objects that the files were made of, and leaves the files alone."""

    objects: tuple[Named, ...]

    def __call__(self, files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
        """Return the files as they are."""
        for named in self.objects:
            view.named(*named)
        return Mutated(files)


def ask_for(resources: Iterable[Resource]) -> AskForObjects:
    """Return the step for a package of these resources.

    A view finds what states no namespace in the default one (porch 1), though it is placed apart from that.
    """
    keys = ((one.one.api_version, one.key) for one in resources)
    named = ((api_version, key.kind, key.namespace or DEFAULT_NAMESPACE, key.name) for api_version, key in keys)
    return AskForObjects(tuple(named))
