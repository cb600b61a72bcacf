"""The three-way merge of single documents: the profile `compat` beside kyaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from benchmarks.beside.packages import list_documents, list_edited_packages
from benchmarks.beside.programs import build_program, run_program
from benchmarks.beside.rows import Row, measure_cold
from reconciler.krm.merge3 import merge3
from reconciler.krm.merge3.rules import COMPAT
from reconciler.krm.schema import load_builtin_merge_schemas
from reconciler.krm.yaml import parse_yaml


def compare_merges(rounds: int) -> Iterator[Row]:
    """Merge all documents that both sides changed. Both programs start with the texts and return a text."""
    program = build_program("kyaml_merge")
    documents = [
        {"origin": origin.text, "updated": updated.text, "local": local.text}
        for package in list_edited_packages()
        for origin, updated, local in list_documents(package)
    ]
    work = {"rounds": rounds, "documents": documents}
    output = run_program(program, work)
    theirs = [result["error"] or yaml.safe_load(result["text"]) for result in output["results"]]
    ours = [yaml.safe_load(_merge(sides)) for sides in documents]
    yield Row(
        "three-way merge of a document", "kyaml `merge3`", measure_cold(documents, _merge, rounds),
        output["cpuSeconds"] * 1000 / len(documents), ours == theirs, f"data of {len(documents)} documents",
    )  # fmt: skip


def _merge(texts: Mapping[str, str]) -> str:
    origin, updated, local = (parse_yaml(texts[side].encode()).documents[0] for side in ("origin", "updated", "local"))
    data: Any = local.data
    schema = load_builtin_merge_schemas().find_schema(str(data["apiVersion"]), str(data["kind"]))
    merged = merge3(origin, updated, local, schema, COMPAT).document
    return merged.text if merged else ""
