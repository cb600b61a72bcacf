"""Checks of upstream fields. The allowed fields depend on the type of the Repository."""

from __future__ import annotations

from reconciler.api.porch.upstream import UpstreamSpec, is_revision_name
from reconciler.controllers.repositories import Repository
from reconciler.krm.version_ranges import parse_range

_NO_RANGE = "not a SemVer version or range"


def list_type_errors(upstream: UpstreamSpec, repository: Repository) -> dict[str, str]:
    """Return an error for each field of an upstream that the type of its Repository does not allow."""
    allowed, name = _FIELDS_BY_TYPE[repository.type], repository.key.name
    fields = {"chart": upstream.chart, "revision": upstream.revision, "workspaceName": upstream.workspace_name,
              "tag": upstream.tag, "version": upstream.version, "digest": upstream.digest}  # fmt: skip
    errors = {
        field: f'spec.upstream.{field}: Repository "{name}" has the type "{repository.type}"; use spec.upstream.'
        f"{allowed['chart' if field == 'chart' else 'version']}"
        for field, value in fields.items()
        if value and field not in allowed.values()
    }
    if repository.type == "git" and is_revision_name(upstream.tag):
        errors["tag"] = (
            f'spec.upstream.tag must not be "{upstream.tag}", because this is the name of a revision; use'
            " spec.upstream.revision"
        )
    if repository.type == "oci" and not upstream.package_name:
        errors["package"] = "spec.upstream.package must be set, because the Repository has type oci"
    if upstream.version and parse_range(upstream.version) is None:
        errors.setdefault("version", f'spec.upstream.version: "{upstream.version}": {_NO_RANGE}')
    if (followed := upstream.tag_policy.range) and parse_range(followed) is None:
        errors["tagPolicy"] = f'spec.upstream.tagPolicy.range: "{followed}": {_NO_RANGE}'
    if repository.type == "helm" and not upstream.version:
        errors["version"] = "spec.upstream.version must be set, because the upstream is a chart"
    return errors


# Each inner mapping belongs to one type of Repository. Its values are the upstream fields that this type allows. If an
# upstream has a field that is not allowed, the error suggests an allowed field: for the field `chart`, the value of the
# key "chart", and for all other fields, the value of the key "version".
_FIELDS_BY_TYPE = {
    "git": {"chart": "package", "version": "revision", "workspace": "workspaceName", "tag": "tag"},
    "helm": {"chart": "chart", "version": "version", "digest": "digest"},
    "oci": {"chart": "package", "version": "version", "tag": "tag", "digest": "digest"},
}
