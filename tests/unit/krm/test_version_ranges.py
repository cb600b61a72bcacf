"""Tests of versions and version ranges. The results are those of the Go library Masterminds/semver 3.5.0."""

from __future__ import annotations

import pytest

from reconciler.krm.version_ranges import (
    MAX_GROUPS,
    MAX_RANGE_CHARACTERS,
    MAX_VERSION_CHARACTERS,
    is_exact_version,
    parse_range,
    parse_version,
    select_version,
    sort_versions,
)


@pytest.mark.parametrize(
    ("text", "numbers", "prerelease"),
    [
        pytest.param("1.2.3", (1, 2, 3), "", id="three-numbers"),
        pytest.param("v1.2", (1, 2, 0), "", id="prefix-and-two-numbers"),
        pytest.param("3", (3, 0, 0), "", id="one-number"),
        pytest.param("01.002.3", (1, 2, 3), "", id="leading-zeros"),
        pytest.param("1.2.3-rc.1+build.5", (1, 2, 3), "rc.1", id="prerelease-and-build"),
        pytest.param("1.2.3+01", (1, 2, 3), "", id="build-with-a-leading-zero"),
        pytest.param("1-a-b", (1, 0, 0), "a-b", id="prerelease-with-a-hyphen"),
        pytest.param("18446744073709551615.0.0", (2**64 - 1, 0, 0), "", id="greatest-number"),
    ],
)
def test_version(text: str, numbers: tuple[int, int, int], prerelease: str) -> None:
    """The numbers and the pre-release of a version are read."""
    version = parse_version(text)
    assert version is not None
    assert (version.major, version.minor, version.patch) == numbers
    assert (version.prerelease, version.text) == (prerelease, text)


@pytest.mark.parametrize(
    "text",
    [
        "", "V1.2.3", "1.2.3.4", "1.x", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", " 1.2.3", "1.2.3\n", "1.2.3-é",
        "18446744073709551616.0.0", "١.٢.٣", "1.2.3-" + "a" * MAX_VERSION_CHARACTERS,
    ],
)  # fmt: skip
def test_invalid_version(text: str) -> None:
    """A text that is not a version is not read."""
    assert parse_version(text) is None


@pytest.mark.parametrize(
    ("requested", "matching", "different"),
    [
        pytest.param("1.2.3", "1.2.3 v1.2.3 1.2.3+build", "1.2.2 1.2.4 1.2.3-rc.1", id="exact"),
        pytest.param("=1.2.3", "1.2.3", "1.2.4", id="equals"),
        pytest.param("v1.2.3", "1.2.3", "1.2.4", id="prefix"),
        pytest.param("1.2", "1.2.0 1.2.9", "1.3.0 1.1.9 1.2.0-rc.1", id="two-numbers"),
        pytest.param("5.x", "5.0.0 5.27.1", "4.9.9 6.0.0 5.1.0-beta", id="wildcard-minor"),
        pytest.param("5.27.X", "5.27.0 5.27.9", "5.28.0", id="wildcard-patch"),
        pytest.param("*", "0.0.0 99.1.2", "1.0.0-rc.1", id="any"),
        pytest.param("*-0", "1.0.0-rc.1 1.0.0", "", id="any-with-prereleases"),
        pytest.param("x.2.3", "0.0.1 9.9.9", "", id="wildcard-major-ignores-the-rest"),
        pytest.param(">=5.20.0 <6.0.0", "5.20.0 5.99.0", "5.19.9 6.0.0 5.21.0-rc.1", id="space"),
        pytest.param(">=5.20.0, <6.0.0", "5.20.0 5.99.0", "5.19.9 6.0.0", id="comma"),
        pytest.param(">= 5.20.0 ,< 6", "5.20.0", "6.0.0", id="spaces-at-the-comma"),
        pytest.param("<1 || >=2.0.0-0", "0.9.0 2.0.0-rc.1 3.0.0", "1.5.0 0.9.0-rc.1", id="prerelease-in-one-group"),
        pytest.param("1.2 - 1.4.5", "1.2.0 1.4.5", "1.1.9 1.4.6", id="hyphen"),
        pytest.param("1.2.3 - 2, !=1.5.0", "1.2.3 2.9.9", "1.5.0 3.0.0", id="hyphen-and-comparator"),
        pytest.param("1.2-3", "1.2.0-3 1.2.0", "1.2.0-2 1.3.0", id="hyphen-without-spaces-is-a-prerelease"),
        pytest.param("~5.27", "5.27.0 5.27.3", "5.28.0 5.26.9", id="tilde-minor"),
        pytest.param("~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2", id="tilde-patch"),
        pytest.param("~>1", "1.0.0 1.9.9", "2.0.0 0.9.0", id="pessimistic-major"),
        pytest.param("~0.0.0", "0.0.0 7.8.9", "", id="tilde-zero-is-any"),
        pytest.param("~0.0", "0.0.9", "0.1.0", id="tilde-zero-minor"),
        pytest.param("~1.2.3-beta", "1.2.3-beta 1.2.3-rc.1 1.2.4", "1.2.3-alpha 1.3.0", id="tilde-prerelease"),
        pytest.param("^1.2.3", "1.2.3 1.9.9", "1.2.2 2.0.0", id="caret"),
        pytest.param("^0.2.3", "0.2.3 0.2.9", "0.3.0 1.0.0", id="caret-zero-major"),
        pytest.param("^0.0.3", "0.0.3", "0.0.4 0.1.3", id="caret-zero-minor"),
        pytest.param("^0.0", "0.0.0 0.0.9", "0.1.0", id="caret-zero-without-patch"),
        pytest.param("^0", "0.0.0 0.9.9", "1.0.0", id="caret-only-zero"),
        pytest.param("^*", "0.0.0", "0.0.1 1.0.0", id="caret-any-is-only-zero"),
        pytest.param(">11", "12.0.0", "11.0.0 11.9.9", id="greater-than-major"),
        pytest.param(">11.1", "11.2.0 12.0.0", "11.1.9 10.0.0", id="greater-than-minor"),
        pytest.param(">*", "0.0.1 1.0.0", "0.0.0", id="greater-than-any"),
        pytest.param("<=11", "11.9.9 3.0.0", "12.0.0", id="at-most-major"),
        pytest.param("=<11.1", "11.1.9", "11.2.0", id="at-most-minor"),
        pytest.param("<11.1", "11.0.9", "11.1.0", id="less-than-minor"),
        pytest.param("=>11.1", "11.1.0", "11.0.9", id="at-least-minor"),
        pytest.param("!=1.2.3", "1.2.4", "1.2.3 1.2.3+build", id="not-equal"),
        pytest.param("!=1.2", "1.3.0 2.2.0", "1.2.0 1.2.9", id="not-equal-minor"),
        pytest.param("!=1", "2.0.0", "1.2.9", id="not-equal-major"),
        pytest.param("!=1.2.x-rc.1", "1.2.0-rc.2 1.2.0", "1.2.5-rc.1", id="not-equal-prerelease-of-a-wildcard"),
        pytest.param("!=*", "0.0.1 0.1.0", "0.0.0", id="not-equal-any"),
        pytest.param(">=1.0.0-rc.2", "1.0.0-rc.10 1.0.0-rc.2 1.0.0", "1.0.0-rc.1 1.0.0-9", id="prerelease-numbers"),
        pytest.param(">1.0.0-alpha", "1.0.0-alpha.1 1.0.0-beta", "1.0.0-alpha 1.0.0-1", id="prerelease-texts"),
        pytest.param(
            ">1.0.0-99", "1.0.0-100 1.0.0-99999999999999999999999", "1.0.0-98", id="long-prerelease-number-is-a-text"
        ),
    ],
)
def test_range(requested: str, matching: str, different: str) -> None:
    """A range matches exactly the versions that Helm and Flux accept."""
    version_range = parse_range(requested)
    assert version_range is not None
    results = {}
    for text in (matching + " " + different).split():
        version = parse_version(text)
        assert version is not None
        results[text] = version_range.matches(version)
    assert results == dict.fromkeys(matching.split(), True) | dict.fromkeys(different.split(), False)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ">>1", "> =1", "1.2.3.4", "latest", ">=1,", ",>=1", ">=1 ||", "||", "1,,2", "1xx", "1.2.3-01", "> 1 - 2",
        ">=1.2.3<2", "~~1", "1\v2", "é", "1|2", "18446744073709551616", "1" + " 1" * MAX_RANGE_CHARACTERS,
        "||".join(["1"] * (MAX_GROUPS + 1)),
    ],
)  # fmt: skip
def test_invalid_range(text: str) -> None:
    """A text that is neither a version nor a range is not read."""
    assert parse_range(text) is None


def test_limits_of_a_range_are_inclusive() -> None:
    """A range of the maximum length, and with the maximum number of groups, is valid."""
    assert parse_range("1" + " " * (MAX_RANGE_CHARACTERS - 1))
    assert parse_range("||".join(["1"] * MAX_GROUPS))


def test_invalid_range_with_many_spaces_is_rejected_fast() -> None:
    """The parser needs linear time, although spaces can separate comparators and follow operators."""
    assert parse_range(("1" + "  ") * 170 + "!") is None


@pytest.mark.parametrize(
    ("text", "is_exact"),
    [
        ("1.2.3", True), ("v1.2.3-rc.1+b", True), ("1.2", False), ("1.2.x", False), ("=1.2.3", False),
        ("1.2.3-01", False), ("stable", False),
    ],
)  # fmt: skip
def test_exact_version(text: str, is_exact: bool) -> None:
    """Only a complete version selects exactly one version."""
    assert is_exact_version(text) is is_exact


def test_sort() -> None:
    """The highest version is first. Texts that are not versions are left out, and the greatest text wins a tie."""
    texts = ["1.0.0", "1.0.0-rc.1", "1.0.0+a", "1.0.0+b", "0.9.0", "1.10.0", "1.9.0", "stable"]
    assert sort_versions(texts) == ("1.10.0", "1.9.0", "1.0.0+b", "1.0.0+a", "1.0.0", "1.0.0-rc.1", "0.9.0")


@pytest.mark.parametrize(
    ("requested", "selected"),
    [
        pytest.param("~3.13", "3.13.2", id="highest-of-a-range"),
        pytest.param("3.14.0", "3.14.0", id="equal-text-before-build-metadata"),
        pytest.param("=3.14.0", "3.14.0+b2", id="greatest-build-metadata"),
        pytest.param("*", "3.14.0+b2", id="no-prerelease"),
        pytest.param(">3.14.0-0", "4.0.0-rc.1", id="prerelease"),
        pytest.param("^9", None, id="no-match"),
    ],
)
def test_select(requested: str, selected: str | None) -> None:
    """The highest version of a range is selected."""
    version_range = parse_range(requested)
    assert version_range is not None
    texts = ["3.13.1", "3.13.2", "3.14.0", "3.14.0+b1", "3.14.0+b2", "4.0.0-rc.1", "no-version"]
    assert select_version(version_range, texts) == selected
