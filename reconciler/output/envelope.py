"""The base classes of all results and of the models in results, with the top-level fields of `-o json`.

Every command builds one result. The text, Markdown, JSON and HTML output of the command are renderings of this result.
This module contains no code for single commands. The other folders of `reconciler.output` declare the result of each
command.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from reconciler.krm.times import format_rfc3339

API_VERSION: Final = "reconciler.dev/v1"

DATACLASS_CONFIG: Final = ConfigDict(alias_generator=to_camel)
"""The value of `__pydantic_config__` for dataclasses in results, so that their JSON data has camelCase keys."""
Timestamp = Annotated[int, PlainSerializer(format_rfc3339, return_type=str)]
"""Seconds since 1970. JSON data contains the time as RFC 3339 in UTC."""


class OutputModel(BaseModel):
    """A mapping in a result. The JSON data has camelCase keys and omits each field that has its default value."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    def to_data(self) -> dict[str, Any]:
        """Return the JSON data. Values of YAML manifests can have types that JSON does not have, for example dates."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


class ResultMetadata(OutputModel):
    """The origin of a result: the program that built it, and the config that it describes."""

    source: Literal["cli", "api"] = Field(description="The program that built the result.")
    config: str = Field(
        default="", description="The ID of the config: a commit ID, or `tree:` and a tree ID for a plain folder."
    )


def create_cli_metadata(config: str = "") -> ResultMetadata:
    """Return the metadata of a result of the command line."""
    return ResultMetadata(source="cli", config=config)


class CommandResult(OutputModel):
    """The result of one command. Subclasses declare `kind`, `items`, `findings` and `summary`.

    All fields are always present in JSON data.
    """

    api_version: Literal["reconciler.dev/v1"] = API_VERSION
    kind: str
    metadata: ResultMetadata
    items: tuple[Any, ...]
    findings: tuple[OutputModel, ...] = ()
    summary: OutputModel
    next: str | None = Field(
        default=None,
        description="The cursor of the next page of items. The value is null, because commands print all items.",
    )

    def to_data(self) -> dict[str, Any]:
        """Return the JSON data with all top-level fields, even if they have their default values."""
        data = super().to_data()
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": data["metadata"],
            "items": data.get("items", ()),
            "findings": data.get("findings", ()),
            "summary": data["summary"],
            "next": self.next,
        }

    def to_json(self) -> str:
        """Return the JSON text. Values of types that JSON does not have are written as text."""
        return json.dumps(self.to_data(), indent=2, default=str)


def build_result_schema(model: type[CommandResult]) -> dict[str, Any]:
    """Return the JSON Schema of a result. The schema accepts unknown fields, because new versions can add fields."""
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    for part in (schema, *schema["$defs"].values()):
        part.pop("additionalProperties", None)
    return schema | {"required": [*schema["properties"]]}
