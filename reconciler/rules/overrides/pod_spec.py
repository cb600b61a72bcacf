"""Pod templates: where a kind has its containers, and which container is called what (kubeadmiral 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import parse_pointer
from reconciler.krm.yaml import Path
from reconciler.rules.edits import value_at
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import POD_SPEC_MALFORMED, POD_SPEC_MISSING, POD_SPEC_UNKNOWN_KIND

_TEMPLATE: Path = ("spec", "template", "spec")
POD_SPEC_PATHS: Mapping[tuple[str, str], Path] = {
    ("", "Pod"): ("spec",),
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    ("batch", "Job"): _TEMPLATE,
}
"""By API group and kind, whatever the version."""
# what is found by name is looked for in this order
_LISTS = ("initContainers", "containers")


def read_pod_spec_paths(more: Mapping[str, str]) -> dict[tuple[str, str], Path]:
    """Return all kinds with pod templates: the known ones, and `more`, a pointer by `group/Kind` (kubeadmiral 5.1).

    Raises PointerError for what is no pointer.
    """
    added = {
        (group, kind): parse_pointer(path) for name, path in more.items() for group, _, kind in [name.rpartition("/")]
    }
    return {**POD_SPEC_PATHS, **added}


@dataclass(frozen=True)
class Template:
    """Where the pod template of a resource is: its group and kind, as they were before any override."""

    group: str
    kind: str
    paths: Mapping[tuple[str, str], Path] = field(default_factory=lambda: POD_SPEC_PATHS)

    def containers(self, data: Any) -> tuple[Container, ...] | Note:
        """Return every container in order, init containers first, or why there is no telling."""
        path = self.paths.get((self.group, self.kind))
        if path is None:
            known = ", ".join(sorted(f"{group}/{kind}".lstrip("/") for group, kind in self.paths))
            name = f"{self.group}/{self.kind}".lstrip("/")
            return Note(POD_SPEC_UNKNOWN_KIND, f"{name} is no kind whose pod template is known ({known})", ("kind",))
        spec = value_at(data, path)
        if spec is ABSENT or spec is None:
            return Note(POD_SPEC_MISSING, "the pod template must exist", path)
        if not isinstance(spec, dict):
            return Note(POD_SPEC_MALFORMED, "the pod template must be a mapping", path)
        for name in _LISTS:
            if not _is_list_of_mappings(spec.get(name)):
                return Note(POD_SPEC_MALFORMED, f"{name} must be a list of mappings", (*path, name))
        return tuple(_containers(spec, path))


@dataclass(frozen=True)
class Container:
    """One container, and its path in the resource."""

    path: Path
    data: Mapping[str, Any]

    @property
    def name(self) -> object:
        """Its name, whatever stands there."""
        return self.data.get("name")


def _is_list_of_mappings(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, dict) for one in value))


def _containers(spec: Mapping[str, Any], path: Path) -> Iterator[Container]:
    for name in _LISTS:
        for index, data in enumerate(spec.get(name) or ()):
            yield Container((*path, name, index), data)
