"""The error of a reset target prints the annotation that acknowledges it, as YAML that is read back as a string."""

from __future__ import annotations

import re

import pytest

from reconciler.krm.findings import Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import parse
from reconciler.planning.destination import Destination
from reconciler.planning.resets import ACK_RESET, KnownHead, reset_finding
from reconciler.snapshot.objects import CommitId

KEY = ObjectKey("config.porch.kpt.dev", "Repository", "default", "berlin")
BERLIN = Destination(KEY, "/fleet.git", "./fleet.git", "clusters/berlin", "", True, Where("berlin.yaml", 3))


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("3f1c2a9b8d7e", id="hexadecimal"),
        pytest.param("012345678901", id="digits"),
        pytest.param("123456789e12", id="like-a-float"),
    ],
)
def test_the_printed_annotation_acknowledges_the_reset(start: str) -> None:
    known = KnownHead("/fleet.git", "clusters/berlin", CommitId(start + "0" * 28))

    finding = reset_finding(BERLIN, known, {})

    assert finding
    line = re.search(rf"{ACK_RESET}: \S+", finding.message)
    assert line
    annotations = parse(f"{line[0]}\n".encode()).documents[0].data
    assert annotations == {ACK_RESET: start}
    assert reset_finding(BERLIN, known, annotations) is None


def test_one_annotation_may_acknowledge_several_resets() -> None:
    known = KnownHead("/fleet.git", "clusters/berlin", CommitId("3f1c2a9b8d7e" + "0" * 28))

    assert reset_finding(BERLIN, known, {ACK_RESET: "0123456789ab, 3f1c2a9b8d7e"}) is None


@pytest.mark.parametrize("value", ["", "3f1c2a9b8d7", "3f1c2a9b8d7e0", "000000000000"])
def test_another_value_does_not_acknowledge_it(value: str) -> None:
    known = KnownHead("/fleet.git", "clusters/berlin", CommitId("3f1c2a9b8d7e" + "0" * 28))

    assert reset_finding(BERLIN, known, {ACK_RESET: value})
