"""Tests of the merge of scalar lists: additions and deletions of both sides apply if they do not overlap."""

from typing import Any

import pytest

from reconciler.krm.merge3.lists import merge_scalar_lists
from reconciler.krm.yaml.compare import is_equal_data

# Each item occurs about 20 times. `SequenceMatcher` ignores such items by default.
REPEATED = [str(number**3 // 7 % 15) for number in range(300)]


@pytest.mark.parametrize(
    ("local", "origin", "updated", "expected"),
    [
        pytest.param(["a"], ["a"], ["a"], ["a"], id="nothing-changed"),
        pytest.param(["a", "ours", "b"], ["a", "ours"], ["a"], ["a", "b"], id="added-behind-what-goes"),
        pytest.param(["a", "b", "ours"], ["a", "ours"], ["a"], ["a", "b"], id="added-before-what-goes"),
        pytest.param(["b", "ours"], ["a", "ours"], ["a"], ["b"], id="changed-beside-what-goes"),
        pytest.param(["a"], ["a", "ours"], ["a"], ["a"], id="both-take-out-the-same"),
        pytest.param(["a", "b"], ["a"], ["a", "b"], ["a", "b"], id="both-put-in-the-same"),
        pytest.param(["a", "a", "b"], ["a", "a"], ["a"], ["a", "b"], id="of-equal-items-one-goes"),
        pytest.param([1, True], [1], [1], [1, True], id="equal-values-of-two-types-are-two-items"),
        pytest.param([True], [1], [1], [True], id="another-type-is-a-change"),
        pytest.param(
            ["mine", *REPEATED],
            REPEATED,
            [*REPEATED[:100], "theirs", *REPEATED[100:]],
            ["mine", *REPEATED[:100], "theirs", *REPEATED[100:]],
            id="many-equal-items",
        ),
        pytest.param(["a", "mine"], ["a", "ours"], ["a"], None, id="changed-what-goes"),
        pytest.param(["a", "b"], ["a"], ["a", "c"], None, id="both-put-something-in-at-one-point"),
        pytest.param([{"a": 1}], ["a"], ["a"], None, id="not-all-scalars"),
        pytest.param(None, ["a"], ["a"], None, id="no-list"),
    ],
)
def test_merge_scalar_lists(local: Any, origin: Any, updated: Any, expected: Any) -> None:
    assert is_equal_data(merge_scalar_lists(local, origin, updated), expected)
