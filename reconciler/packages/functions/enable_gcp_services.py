"""enable-gcp-services: a config-connector Service for every service of a ProjectServiceSet (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import dirname
from typing import Any

from reconciler.krm.yaml import YamlFile
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    failure,
    reports_faults,
    scalar_text,
    string_map,
    value_at,
)
from reconciler.packages.functions.limits import value_bytes
from reconciler.packages.parsing import parse_cached
from reconciler.packages.resource import LOCAL_CONFIG

_GROUP, _KIND = "blueprints.cloud.google.com", "ProjectServiceSet"
_SERVICE = {"apiVersion": "serviceusage.cnrm.cloud.google.com/v1beta1", "kind": "Service"}
_OWNER = "blueprints.cloud.google.com/ownerReference"
_MADE_HERE = {"cnrm.cloud.google.com/blueprint": "kpt-fn"}
# a service without its owner's part
_OWN_BYTES = 512
# upstream quotes annotations
_TEMPLATE = b"""apiVersion: serviceusage.cnrm.cloud.google.com/v1beta1
kind: Service
metadata:
  name: x
  annotations:
    blueprints.cloud.google.com/ownerReference: 'x'
    cnrm.cloud.google.com/blueprint: 'kpt-fn'
spec:
  resourceID: x
"""


@dataclass(frozen=True)
class _Set:
    """A ProjectServiceSet among the items."""

    item: Item
    services: tuple[str, ...]

    @property
    def owner(self) -> str:
        """What the services made for this set are marked with."""
        return f"{_GROUP}/{_KIND}/{self.item.name}"


@reports_faults
def enable_gcp_services(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the services of every set, and without those made earlier that no set lists any more."""
    sets = [_read(item) for item in items if (item.api_version, item.kind) == (f"{_GROUP}/v1alpha1", _KIND)]
    fault = next((read for read in sets if isinstance(read, str)), None)
    if fault is not None:
        return failure(items, f"failed to add services: {fault}")
    current = {item.id: item for item in items}
    owned: dict[object, list[Item]] = {}
    for item in items:
        owned.setdefault(scalar_text(item.annotations.get(_OWNER)), []).append(item)
    results: list[Result] = []
    added: list[Item] = []
    for services in (read for read in sets if isinstance(read, _Set)):
        current[services.item.id] = services.item.with_values([(_annotation(LOCAL_CONFIG), "true")])
        old = owned.pop(services.owner, [])
        made = list(_made(services, {item.name: item for item in old}, context))
        for item in old:
            del current[item.id]
        added += made
        results += _said(old, made)
    return Output((*current.values(), *added), tuple(sorted(results, key=_by_name)))


def _annotation(name: str) -> tuple[str, str, str]:
    return ("metadata", "annotations", name)


def _read(item: Item) -> _Set | str:
    """Return a set of services, or what is wrong with it."""
    names = value_at(item.data, ("spec", "services"))
    if not isinstance(names, list) or not names:
        return "at least one service must be specified under `spec.services[]`"
    texts = [scalar_text(name) or "" for name in names]
    wrong = next((text for text in texts if text.count(".") < 2), None)
    if wrong is not None:
        return f'invalid service specified: "{wrong}" must have at least three parts, as compute.googleapis.com'
    return _Set(item, tuple(dict.fromkeys(texts)))


def _made(services: _Set, old: dict[str, Item], context: FunctionContext) -> Iterator[Item]:
    # every service gets a copy of its owner's annotations and name
    each = value_bytes(services.item.metadata) + _OWN_BYTES
    what = f"{services.item.file}: {services.item.kind} {services.item.name}: spec.services"
    context.budget.create(each * len(services.services), what)
    for service in services.services:
        data = _service(services, service)
        known = old.get(str(data["metadata"]["name"]))
        # what was made before keeps its place and its text
        yield known.with_data(data) if known else _fresh(services.item, data, context)


def _fresh(owner: Item, data: dict[str, Any], context: FunctionContext) -> Item:
    template = parse_cached(_TEMPLATE)
    assert isinstance(template, YamlFile)
    return Item(context.package, _path(owner, data["metadata"], context), -1, data, base=template.documents[0])


def _service(services: _Set, service: str) -> dict[str, Any]:
    item = services.item
    metadata: dict[str, Any] = {"name": f"{item.name}-{service.partition('.')[0]}"}
    metadata |= {"namespace": item.namespace} if item.namespace else {}
    copied = {key: text for key, text in string_map(item.annotations).items() if key != LOCAL_CONFIG}
    metadata["annotations"] = {_OWNER: services.owner, **_MADE_HERE, **copied}
    project = scalar_text(value_at(item.data, ("spec", "projectID"), "")) or ""
    reference = {"projectRef": {"external": project}} if project else {}
    return {**_SERVICE, "metadata": metadata, "spec": {"resourceID": service, **reference}}


def _path(owner: Item, metadata: dict[str, Any], context: FunctionContext) -> str:
    """Return the file beside its owner's, relative to the package whose pipeline runs."""
    beside = dirname(owner.file.removeprefix(f"{context.package}/") if context.package else owner.file)
    folders = (beside, str(metadata.get("namespace", "")), f"service_{metadata['name']}.yaml")
    return "/".join(folder for folder in folders if folder)


def _said(old: Sequence[Item], made: Sequence[Item]) -> Iterable[Result]:
    """Return what became of each service: those that were there first."""
    before, after = {item.name: item for item in old}, {item.name: item for item in made}
    for name, item in before.items():
        yield _result("recreated service" if name in after else "pruned service", after.get(name, item))
    yield from (_result("generated service", item) for name, item in after.items() if name not in before)


def _by_name(result: Result) -> tuple[str, ...]:
    return tuple(reversed(result.resource or ()))


def _result(message: str, item: Item) -> Result:
    return Result(message, resource=(item.api_version, item.kind, item.namespace, item.name), file=item.file)
