"""Tests of the fast validators: they read the same models as the other validators, and no unusual manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from reconciler.api import base
from reconciler.api.base import ApiModel, Deprecation, FieldIssue, ReadResult, read_model, read_valid
from reconciler.api.field_types import LenientItem
from reconciler.api.messages import DEFAULT_TEMPLATES
from reconciler.output.schemas.json_schemas import MODELS
from tests.unit.output.schemas.documents import read_full_documents


def read_slowly(model: type[ApiModel], data: Any) -> ReadResult[ApiModel]:
    """Read data only with the validator that reports all errors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "read_valid", lambda model, data, path: None)
        return read_model(model, data, DEFAULT_TEMPLATES)


MODELS_BY_KIND = {model.__name__: model for model in MODELS}


class Item(ApiModel):
    """An item."""

    name: str = Field("", description="Name.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for the reserved name."""
        if data.get("name") == "reserved":
            yield FieldIssue("{path} must not be reserved", ("name",))


class Base(ApiModel):
    """A mapping with a field for each feature that a fast validator must handle."""

    deprecated_names: ClassVar = {"old": Deprecation("newName", "Use newName.")}
    blank_fields: ClassVar = ("mode",)
    nullable_fields: ClassVar = frozenset({"patch"})

    new_name: str = Field("", description="Name.")
    mode: str = Field("safe", description="Mode.")
    patch: Any = Field("absent", description="Patch.")
    extra: Any = Field("absent", description="Any value.")
    type: Literal["a", "b"] = Field("a", description="A name that also occurs in core schemas.")
    metadata: dict[str, str] = Field({}, description="Another name that occurs in core schemas.")
    items: tuple[Annotated[Item | None, LenientItem(Item)], ...] = Field((), description="Items.")
    parent: Base | None = Field(None, description="Parent.")

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Return the fields with the name in lower case."""
        if data.get("newName") == "UPPER":
            notify("newName", "{path} is read in lower case")
            data["newName"] = "upper"
        return data


class OpenBase(Base):
    """A mapping that can have unknown fields."""

    is_open: ClassVar = True


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        pytest.param({"newName": "a", "type": "b", "metadata": {"a": "b"}}, True, id="valid"),
        pytest.param({"newName": None, "mode": None, "items": None}, True, id="null-is-absent"),
        pytest.param({"patch": None}, True, id="null-as-a-value"),
        pytest.param({"extra": None}, True, id="null-of-any-type-is-absent"),
        pytest.param({"parent": {"parent": {"newName": "a"}}}, True, id="nested"),
        pytest.param({"items": [{"name": "a"}]}, True, id="items"),
        pytest.param({"old": "a"}, True, id="deprecated-name"),
        pytest.param({"newName": "UPPER"}, True, id="deprecated-value"),
        pytest.param({"mode": ""}, True, id="blank"),
        pytest.param({"parent": {"old": "a"}}, True, id="nested-deprecated-name"),
        pytest.param({"old": "a", "newName": "b"}, False, id="two-names"),
        pytest.param({"items": [{"name": "reserved"}]}, False, id="rule"),
        pytest.param({"items": [{"nmae": "a"}]}, False, id="unknown-field"),
        pytest.param({"new_name": "a"}, False, id="name-of-the-attribute"),
        pytest.param({"newName": 5}, False, id="wrong-type"),
        pytest.param([], False, id="no-mapping"),
    ],
)
def test_fast_validator_reads_valid_mappings(data: Any, is_read: bool) -> None:
    result = read_valid(Base, data)

    assert (result is not None) == is_read
    if result:
        assert result == read_slowly(Base, data)


def test_open_model_ignores_names_of_attributes() -> None:
    data = {"new_name": "a", "other": 1}

    assert read_valid(OpenBase, data) == ReadResult(OpenBase())


def test_lenient_items_are_valid_in_both_validators() -> None:
    result = read_model(Base, {"items": [{"name": "reserved"}]}, DEFAULT_TEMPLATES, lenient_codes=("",))

    assert result.model is not None
    assert result.model.items == (None,)
    assert result.error_texts == ("items[0].name must not be reserved",)


@pytest.mark.parametrize(
    "document",
    [document for document in read_full_documents() if document["kind"] in MODELS_BY_KIND],
    ids=lambda document: f"{document['kind']}-{document['metadata']['name']}",
)
def test_validators_of_all_kinds_read_the_same_model(document: dict[str, Any]) -> None:
    model = MODELS_BY_KIND[document["kind"]]

    result = read_valid(model, document)

    assert result is not None
    assert result == read_slowly(model, document)
