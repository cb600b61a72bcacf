"""Test of the annotations of models: pydantic must not compile them at the start of each command."""

from __future__ import annotations

import sys

from reconciler.api.base import ApiModel
from reconciler.output.schemas.json_schemas import KINDS


def list_subclasses(model: type[ApiModel]) -> set[type[ApiModel]]:
    return {model}.union(*map(list_subclasses, model.__subclasses__()))


def test_modules_with_models_do_not_postpone_annotations() -> None:
    assert KINDS
    modules = {model.__module__ for model in list_subclasses(ApiModel) if model.__module__.startswith("reconciler.")}

    assert len(modules) > 5
    assert [name for name in sorted(modules) if hasattr(sys.modules[name], "annotations")] == []
