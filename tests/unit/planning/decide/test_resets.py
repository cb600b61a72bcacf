"""Tests of target resets: the error prints the annotation that acknowledges it, and YAML parses it as a string."""

from __future__ import annotations

import re

import pytest

from reconciler.catalog.files import CommitId
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import parse_yaml
from reconciler.planning.decide.deletion_safety import (
    ACK_RESET_ANNOTATION,
    KnownHead,
    check_repository_reset,
)
from reconciler.planning.model.targets import Target

KEY = ObjectKey("config.porch.kpt.dev", "Repository", "default", "berlin")
BERLIN = Target(KEY, "/fleet.git", "./fleet.git", "clusters/berlin", "", True, SourceLocation("berlin.yaml", 3))


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("3f1c2a9b8d7e", id="hexadecimal"),
        pytest.param("012345678901", id="digits"),
        pytest.param("123456789e12", id="like-a-float"),
    ],
)
def test_printed_annotation_acknowledges_the_reset(start: str) -> None:
    known = KnownHead("/fleet.git", "clusters/berlin", CommitId(start + "0" * 28))

    finding = check_repository_reset(BERLIN, known, {})

    assert finding
    line = re.search(rf"{ACK_RESET_ANNOTATION}: \S+", finding.message)
    assert line
    annotations = parse_yaml(f"{line[0]}\n".encode()).documents[0].data
    assert annotations == {ACK_RESET_ANNOTATION: start}
    assert check_repository_reset(BERLIN, known, annotations) is None


def test_one_annotation_can_acknowledge_several_resets() -> None:
    known = KnownHead("/fleet.git", "clusters/berlin", CommitId("3f1c2a9b8d7e" + "0" * 28))

    assert check_repository_reset(BERLIN, known, {ACK_RESET_ANNOTATION: "0123456789ab, 3f1c2a9b8d7e"}) is None


@pytest.mark.parametrize("value", ["", "3f1c2a9b8d7", "3f1c2a9b8d7e0", "000000000000"])
def test_another_value_does_not_acknowledge_the_reset(value: str) -> None:
    known = KnownHead("/fleet.git", "clusters/berlin", CommitId("3f1c2a9b8d7e" + "0" * 28))

    assert check_repository_reset(BERLIN, known, {ACK_RESET_ANNOTATION: value})
