"""The PackageStatus file: the inputs and the results of the last render of a package.

The reconciler writes this file. Anyone can edit it, so the code that reads it accepts any data.
"""

from typing import Any, ClassVar

from pydantic import Field

from reconciler.api.base import ApiModel
from reconciler.api.manifest import KrmObject
from reconciler.api.reconciler import RECONCILER_API_VERSION
from reconciler.krm.objects import ConditionStatus

_FILE = "Path of the file in the package."
_RESOURCE = "Resource in the file, as Kind/namespace/name."


class StatusOwner(ApiModel):
    """The config object that requests the package."""

    api_version: str = Field("", description="API group and version of the object.")
    kind: str = Field("", description="Kind of the object.")
    namespace: str = Field("", description="Namespace of the object. It is empty for a cluster-scoped object.")
    name: str = Field("", description="Name of the object.")
    set: str = Field("", description="Name of the PackageVariantSet or PluginPreset that created the object.")


class StatusChartDependency(ApiModel):
    """A chart that the chart of the package requires and does not contain."""

    name: str = Field("", description="Name of the chart.")
    version: str = Field("", description="Version of the chart.")
    digest: str = Field("", description="Digest of the archive, or of the manifest in a registry.")


class StatusUpstreamFields(ApiModel):
    """A version of an upstream package.

    A package from Git has the fields directory, ref and commit. A chart from a chart repository has chart, version and
    digest, and an OCI artifact has package, tag and digest.
    """

    repo: str = Field("", description="URL of the package repository.")
    directory: str = Field("", description="Folder of the package in this repository.")
    ref: str = Field("", description="Git ref.")
    commit: str = Field("", description="ID of the commit.")
    chart: str = Field("", description="Name of the chart.")
    version: str = Field("", description="Version of the chart.")
    package: str = Field("", description="Path of the package in the registry.")
    tag: str = Field("", description="Tag of the artifact.")
    digest: str = Field("", description="Digest of the archive, or of the manifest in a registry.")
    tree: str = Field("", description="ID of the Git tree with the files of the package, before charts are rendered.")
    app_version: str = Field("", description="Version of the application in a chart.")
    dependencies: tuple[StatusChartDependency, ...] = Field((), description="Required charts that were downloaded.")


class StatusSourceVersion(StatusUpstreamFields):
    """The version of one source of a package with several sources."""

    name: str = Field("", description="Name of the source.")


class StatusUpstreamVersion(StatusUpstreamFields):
    """A version of the upstream package.

    If a package has several sources, `sources` contains all of them. The other fields then contain the values of the
    first source with resources.
    """

    sources: tuple[StatusSourceVersion, ...] = Field((), description="All sources of a package with several sources.")


class StatusUpstream(ApiModel):
    """The upstream versions of the previous and the new content. Only packages with an upstream have this field."""

    from_: StatusUpstreamVersion = Field(
        StatusUpstreamVersion(), alias="from", description="Upstream version before the change."
    )
    to: StatusUpstreamVersion = Field(StatusUpstreamVersion(), description="Upstream version after the change.")


class StatusTrees(ApiModel):
    """The IDs of the Git trees of the render."""

    base: str = Field(
        "", description="ID of the tree without local changes: the upstream package or the generated files."
    )
    merged: str = Field("", description="ID of the tree with local changes. The functions receive this tree as input.")
    rendered: str = Field("", description="ID of the tree with the package after the render.")


class StatusInputObject(ApiModel):
    """A config object that the render used."""

    kind: str = Field("", description="Kind of the object.")
    namespace: str = Field("", description="Namespace of the object.")
    name: str = Field("", description="Name of the object.")
    file: str = Field("", description="Config file that contains the object.")
    hash: str = Field("", description="Digest of the object. The digest of a Secret is masked.")


class StatusEngine(ApiModel):
    """The program that rendered the source."""

    name: str = Field("", description="Name of the program, for example helm.")
    version: str = Field("", description="Major and minor version, and the digest of the program file.")


class StatusSourceFields(ApiModel):
    """How the files of the upstream became the files of the package. A kpt package does not have this field."""

    kind: str = Field("", description="Kind of the source: helm, kustomize or manifests.")
    engine: StatusEngine = StatusEngine()
    release_name: str = Field("", description="Name of the Helm release.")
    namespace: str = Field("", description="Namespace of the Helm release.")
    kube_version: str = Field("", description="Kubernetes version for which the chart was rendered.")
    api_versions: tuple[str, ...] = Field((), description="API versions that were added for the chart.")
    values_digest: str = Field("", description="Digest of the values of the chart.")


class StatusNamedSource(StatusSourceFields):
    """How the files of one of several sources became files of the package."""

    name: str = Field("", description="Name of the source.")


class StatusSource(StatusSourceFields):
    """How the files of the upstream became the files of the package. A kpt package does not have this field."""

    sources: tuple[StatusNamedSource, ...] = Field((), description="The sources of a package with several sources.")


class StatusInputs(ApiModel):
    """All inputs of the render."""

    config: str = Field("", description="Commit of the config, or tree:<id> if the config is not in a Git repository.")
    digest: str = Field("", description="Digest of all dependencies of the render.")
    source: StatusSource = StatusSource()
    objects: tuple[StatusInputObject, ...] = Field((), description="Config objects that the render used.")


class StatusCondition(ApiModel):
    """A condition of the package."""

    type: str = Field(description="Type of the condition.")
    status: ConditionStatus = Field("Unknown", description="Status of the condition.")
    reason: str = Field("", description="Reason for the status, as one word.")
    message: str = Field("", description="Message.")


class StatusGate(ApiModel):
    """A readiness gate of the Kptfile."""

    condition_type: str = Field(description="Type of the condition that the gate requires.")
    met: Any = Field(
        False,
        description="Whether the condition has the status True. If not, reconciler approve does not publish the draft.",
        json_schema_extra={"type": "boolean"},
    )


class StatusInjection(ApiModel):
    """A config object that was injected into a resource of the package."""

    point: str = Field("", description="Condition type of the injection point.")
    file: str = Field("", description="File in the package that receives the content of the object.")
    object: str = Field("", description="Injected object, as Kind/namespace/name.")
    from_: str = Field("", alias="from", description="Config file that contains the object.")
    hash: str = Field("", description="Digest of the object.")


class StatusConflict(ApiModel):
    """A conflict of a local change with an upstream change or a rule."""

    kind: str = Field("", description="Conflicting part: field, element (of a list), resource, file or package.")
    file: str = Field("", description=_FILE)
    resource: str = Field("", description=_RESOURCE)
    pointer: str = Field("", description="JSON pointer of the field.")
    base: Any = Field(None, description="Value before both changes. Absent if the field did not exist.")
    local: Any = Field(None, description="Value after the local change. Absent if the change removed the field.")
    upstream: Any = Field(None, description="Value after the upstream change. Absent if the change removed the field.")
    chosen: str = Field(
        "",
        description=(
            "Side whose value the draft contains: local, upstream, or rule. The side rule means that a "
            "function, an injection or a policy sets the value."
        ),
    )
    rule: str = Field("", description="Rule that determined the chosen value.")


class StatusOverride(ApiModel):
    """An addon or plugin override that changed the package."""

    layer: str = Field("", description="Layer that contains the override, such as organization or override-cluster.")
    kind: str = Field("", description="Kind of the override or addon.")
    namespace: str = Field("", description="Namespace of the override or addon.")
    name: str = Field("", description="Name of the override or addon.")
    instance: str = Field("", description="ID of the addon instance.")


class StatusStepValue(ApiModel):
    """A parameter that an expression uses, and the origin of its value."""

    name: str = Field("", description="Name of the parameter.")
    layer: str = Field("", description="Layer that sets the parameter.")
    by: str = Field("", description="Object that sets the parameter, as Kind/namespace/name.")
    file: str = Field("", description="Config file that contains this object.")
    where: str = Field("", description="Field of this object that contains the value.")


class StatusStep(ApiModel):
    """One step in the history of a value. The last step sets the effective value."""

    layer: str = Field(
        "", description="Layer that made the change, such as definition-default, preset, addon or values-from."
    )
    instance: str = Field("", description="ID of the addon instance.")
    by: str = Field("", description="Object that made the change, as Kind/namespace/name.")
    file: str = Field("", description="Config file that contains this object.")
    where: str = Field("", description="Field of this object that contains the value.")
    op: str = Field("", description="Type of the change: added, replaced or removed.")
    before: Any = Field(None, description="Value before the change. Absent if the change added the value.")
    after: Any = Field(None, description="Value after the change. Absent if the change removed the value.")
    expression: str = Field("", description="Expression that produced the value.")
    for_each: str = Field("", description="Expression of the field forEach that produced the resource.")
    values: tuple[StatusStepValue, ...] = Field((), description="Sources of the parameters in the expression.")


class StatusLayer(ApiModel):
    """A value and the steps that set it."""

    file: str = Field("", description=_FILE)
    resource: str = Field("", description=_RESOURCE)
    pointer: str = Field(
        "",
        description=(
            "JSON pointer of the value. If the value is part of a string that contains YAML, the form is "
            "POINTER!POINTER: the pointer of the string, and the pointer of the value in the YAML text."
        ),
    )
    option: str = Field("", description="Name of the plugin option, or path of the value of a chart.")
    steps: tuple[StatusStep, ...] = Field((), description="Changes of the value, in the order in which they were made.")


class StatusTemplateProperty(ApiModel):
    """A property of the template that applies to the child resource, and the object that sets the property."""

    name: str = Field("", description="Name of the property.")
    source: str = Field("", description="Object that sets the property.")
    field: str = Field("", description="Field of this object that contains the value.")
    shadowed: tuple[str, ...] = Field((), description="Fields of the parent that the property of the child hides.")
    overridden: tuple[str, ...] = Field((), description="Fields of the parent to which the child gives another value.")


class StatusTemplateObject(ApiModel):
    """A Kubernetes object that an operator, such as Strimzi, creates from the template."""

    kind: str = Field("", description="Kind of the object.")
    names: tuple[str, ...] = Field(
        (), description="Names of the objects. {nodeId} is a placeholder for the number of a node."
    )
    labels: dict[str, str] = Field({}, description="Labels of the object.")
    annotations: dict[str, str] = Field({}, description="Annotations of the object.")
    fields_: dict[str, Any] = Field({}, alias="fields", description="Fields of the object that the template sets.")


class StatusTemplate(ApiModel):
    """The template that applies to a child resource, after the merge with the template of the parent."""

    file: str = Field("", description=_FILE)
    resource: str = Field("", description="Child resource, as Kind/namespace/name.")
    parent: str = Field("", description="Parent resource, as Kind/namespace/name.")
    mode: str = Field(
        "",
        description="Location of the effective template. materialise: the file of the child. report: only this entry.",
    )
    properties: tuple[StatusTemplateProperty, ...] = Field((), description="Properties of the template.")
    settings: dict[str, Any] = Field({}, description="Settings outside of the template that the child inherits too.")
    objects: tuple[StatusTemplateObject, ...] = Field((), description="Objects that the operator creates.")
    template: dict[str, Any] = Field({}, description="Effective template, if the mode is report.")
    to_repeat: str = Field(
        "", description="Template, as YAML, that restores the hidden settings of the parent if the child contains it."
    )


class StatusFunctionResult(ApiModel):
    """The result of a function call, in the format of kpt's function results."""

    package: str = Field("", description="Path of the subpackage. A dot means the package itself.")
    stage: str = Field("", description="Type of the function: mutator or validator.")
    name: str = Field("", description="Name of the function in the pipeline.")
    image: str = Field("", description="Image of the function.")
    exec: str = Field("", description="Command of the function.")
    exit_code: Any = Field(
        0, description="Exit code of the function. 0 means success.", json_schema_extra={"type": "integer"}
    )
    execution_error: str = Field(
        "", description="Reason why the function was not called, or why its output was rejected."
    )
    results: tuple[dict[str, Any], ...] = Field(
        (), description="Results of the function: message, severity, resourceRef, field, file and tags."
    )
    stderr: str = Field("", description="Output of the function to standard error.")


class StatusWarning(ApiModel):
    """A warning or an info of the render."""

    code: str = Field("", description="Code of the finding.")
    severity: str = Field("", description="warning or info.")
    message: str = Field("", description="Message.")
    object: str = Field("", description="Object that causes the finding.")
    file: str = Field("", description="File that contains the object.")
    pointer: str = Field("", description="Field of the object that causes the finding.")


class PackageStatusFields(ApiModel):
    """The inputs and the results of the last render."""

    repository: str = Field("", description="Name of the target.")
    package: str = Field("", description="Path of the package in the target.")
    owner: StatusOwner = StatusOwner()
    task: str = Field("", description="Type of the change, for example clone, upgrade or edit.")
    labels: dict[str, str] = Field({}, description="Labels of the draft. Present if the package has an upstream.")
    annotations: dict[str, str] = Field(
        {}, description="Annotations of the draft. Present if the package has an upstream."
    )
    upstream: StatusUpstream = StatusUpstream()
    trees: StatusTrees = StatusTrees()
    inputs: StatusInputs = StatusInputs()
    conditions: tuple[StatusCondition, ...] = Field(
        (), description="Conditions of the Kptfile, and conditions of the reconciler."
    )
    readiness_gates: tuple[StatusGate, ...] = Field((), description="Readiness gates of the Kptfile.")
    injected: tuple[StatusInjection, ...] = Field((), description="Completed config injections.")
    conflicts: tuple[StatusConflict, ...] = Field(
        (), description="Conflicts of local changes with upstream changes or rules."
    )
    applied_overrides: tuple[StatusOverride, ...] = Field(
        (), description="Addons or plugin overrides that changed the package, in the order in which they were applied."
    )
    layers: tuple[StatusLayer, ...] = Field(
        (),
        description=(
            "Origin of each value of a generated package, of each chart value that replaces a default of the chart, "
            "and of each value in a Kafka template."
        ),
    )
    overrides: tuple[StatusLayer, ...] = Field((), description="Values that override policies changed.")
    templates: tuple[StatusTemplate, ...] = Field((), description="Effective template of each child resource.")
    results: tuple[StatusFunctionResult, ...] = Field((), description="One entry for each function call.")
    warnings: tuple[StatusWarning, ...] = Field((), description="Warnings and infos of the render.")


class PackageStatus(KrmObject):
    """The inputs and the results of the last render of a package. The reconciler writes it."""

    api_versions: ClassVar = (RECONCILER_API_VERSION,)

    status: PackageStatusFields = PackageStatusFields()
