"""Helm hooks: which rendered resources are part of the package.

A GitOps agent that does not support Helm hooks applies a hook like any other resource. A hook that deletes or scales
down resources would then run at once.
"""

from __future__ import annotations

from typing import Final

from reconciler.packages.charts.request import HookPolicy
from reconciler.packages.resource import KrmResource

HOOK_ANNOTATION: Final = "helm.sh/hook"
_TEST_HOOKS = frozenset({"test", "test-success", "test-failure"})
_ORDINARY_HOOKS = frozenset({"crd-install"})
_KEPT_HOOKS = frozenset({"pre-install", "post-install", "pre-upgrade", "post-upgrade"})
_WRITTEN_HOOKS: dict[HookPolicy, frozenset[str]] = {
    "keep": _KEPT_HOOKS,
    "drop": frozenset(),
    "argocd": _KEPT_HOOKS | {"pre-delete", "post-delete"},
}


def read_hooks(resource: KrmResource) -> tuple[str, ...]:
    """Return the hooks of a resource, e.g. ("pre-install", "pre-upgrade"). Return () if it is not a hook."""
    annotation = resource.annotations.get(HOOK_ANNOTATION)
    names = annotation.split(",") if isinstance(annotation, str) else ()
    return tuple(name for part in names if (name := part.strip().lower()))


def is_left_out(hooks: tuple[str, ...], policy: HookPolicy, *, skip_tests: bool) -> bool:
    """Return whether a resource with these hooks is omitted from the package.

    As in Helm, a resource with a test hook is a test, even if it has other hooks too. Tests are included only with the
    policy `keep` and without `skip_tests`. Any other resource with hooks is included if the policy includes at least
    one of its hooks.
    """
    if not hooks or not _ORDINARY_HOOKS.isdisjoint(hooks):
        return False
    if not _TEST_HOOKS.isdisjoint(hooks):
        return skip_tests or policy != "keep"
    return _WRITTEN_HOOKS[policy].isdisjoint(hooks)


def is_ordinary(hooks: tuple[str, ...]) -> bool:
    """Return whether every agent applies a resource with these hooks like a resource without hooks."""
    return not hooks or not _ORDINARY_HOOKS.isdisjoint(hooks)
