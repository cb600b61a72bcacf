"""Data classes of an explanation: the values of a package, and the steps that set each value.

The modules `builder` and `steps` find the steps. The module `formats` formats the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import Field, InstanceOf

from reconciler.api.greenhouse import GROUP, PLUGIN
from reconciler.controllers.plugin_presets.option_layers import LAYERS, OptionLayer
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.merge3.rules import ABSENT
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.envelope import DATACLASS_CONFIG
from reconciler.output.explain.verification import CommitInfo
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.removable_layers import RemovableLayer

ResourceLocation: TypeAlias = tuple[str, str]
"""The file of a resource, and the name of the resource as `Kind/namespace/name`."""


class ValueNotFoundError(ExpectedError):
    """The user named a resource or a value that does not exist. The message lists the existing names."""


@dataclass(frozen=True)
class AblationResult:
    """The result of a render without one layer: the value, or the reason if this render blocks the package."""

    __pydantic_config__ = DATACLASS_CONFIG

    value: Any = ABSENT
    blocked_reason: str = ""


@dataclass(frozen=True)
class ValueStep:
    """One change of a value. `before` and `after` are the values before and after the change. Secret values are masked.

    Attributes:
        set_by: The object, the function or the person that made the change.
        operation: The kind of the change, such as `add` or `replace`.
        line: The line of `field` in `file`. The line is 0 if the current file does not contain the field.
        loop: The expression of a `forEach`, if the change was made for an item of this `forEach`.
        input_name: The field path of the variable, if the step set an input of an expression.
        expression_inputs: The last step of each variable that the expression read.
        commit: The commit of `file`, if the file is not part of the config.
        local_commit: The commit in which a person made a local change. None for other steps, and if it is unknown.
        removable_layer: The layer to remove for an ablation. None if the layer cannot be removed.
        ablation: The result of the ablation. None if no ablation was computed.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    set_by: str = ""
    operation: str = ""
    before: Any = ABSENT
    after: Any = ABSENT
    layer: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    expression: Any = ABSENT
    instance: str = ""
    loop: Annotated[str, Field(serialization_alias="forEach")] = ""
    input_name: Annotated[str, Field(serialization_alias="name")] = ""
    expression_inputs: Annotated[tuple[ValueStep, ...], Field(serialization_alias="inputs")] = ()
    commit: str = ""
    function_config: str = ""
    local_commit: CommitInfo | None = None
    removable_layer: Annotated[InstanceOf[RemovableLayer] | None, Field(exclude=True)] = None
    ablation: Annotated[AblationResult | None, Field(serialization_alias="without")] = None


@dataclass(frozen=True)
class FieldDependencies:
    """The values of a chart on which a field of a rendered resource depends.

    A field depends on a value if a render with a different value changes the field.

    Attributes:
        values: The values with their layers.
        unknown: The paths of values with which the chart could not be rendered.
        unchecked_count: The number of values that were not checked, because of the setting
            `sources.helm.explain_renders`.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    values: tuple[ExplainedValue, ...] = ()
    unknown: tuple[str, ...] = ()
    unchecked_count: int = 0


@dataclass(frozen=True)
class ExplainedValue:
    """A value of a resource with the steps that set the value. The result is the value of the last step.

    Attributes:
        option: The name of the option, if the value belongs to an option of a Plugin, or the path of a chart value.
        is_unchanged: Whether the value is equal to the value in the source of the package.
        dependencies: The chart values on which the field depends. None if they were not computed.
        source: The name of the source whose chart has the value, if the package has several sources.
        removed_from: The data of the resource before the value was removed. ABSENT if the value was not removed.
    """

    __pydantic_config__ = DATACLASS_CONFIG

    file: str
    resource: str
    pointer: str
    steps: tuple[ValueStep, ...]
    option: str = ""
    is_unchanged: bool = False
    removed_from: Annotated[Any, Field(exclude=True)] = field(default=ABSENT, repr=False)
    dependencies: FieldDependencies | None = None
    source: str = ""

    @property
    def has_nested_values(self) -> bool:
        """Whether the value is or was a mapping or a list."""
        last = self.steps[-1]
        return bool(self.option) or any(isinstance(value, dict | list) for value in (last.before, last.after))

    @property
    def location(self) -> ResourceLocation:
        """The file and the name of the resource that contains the value."""
        return self.file, self.resource


UPSTREAM_LAYER, GENERATED_LAYER, RESOURCE_LAYER = "upstream", "generated", "resource"
SOURCE_LAYERS = frozenset({UPSTREAM_LAYER, GENERATED_LAYER, RESOURCE_LAYER})
"""The layers of a package source: an upstream package, a generated package, or a resource of the config."""


@dataclass(frozen=True)
class PackageExplanation:
    """The explanation of a package, of one resource of the package, or of one value.

    Attributes:
        template_children: The resources that inherit templates, in the form of the status file.
        requested_resource: The resource that the user requested. "" if the user requested all resources.
    """

    package: ReRenderedPackage
    values: tuple[ExplainedValue, ...] = ()
    template_children: tuple[Mapping[str, Any], ...] = ()
    requested_resource: str = ""

    @property
    def option_layers(self) -> tuple[OptionLayer, ...]:
        """All layers of the options of a Plugin, in the order of precedence. Other packages have no option layers."""
        owner = self.package.owner
        return LAYERS if owner and (owner.key.group, owner.key.kind) == (GROUP, PLUGIN) else ()

    @property
    def effective_layers(self) -> frozenset[str]:
        """The layers that set at least one of the values."""
        return frozenset(step.layer for value in self.values for step in value.steps if step.layer)
