"""Semantic versions and version ranges, with the syntax and the results of the Go library Masterminds/semver 3.

Helm and Flux use this library. A range consists of comparators, e.g. `>=1.2 <2`, `~1.2`, `^1.2`, `1.x` or `1.2 - 1.4`.
All comparators of a group must match, and `||` separates alternative groups. A pre-release matches only a group that
contains a pre-release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

MAX_VERSION_CHARACTERS: Final = 256
MAX_RANGE_CHARACTERS: Final = 512
MAX_GROUPS: Final = 32
"""Maximum number of groups in one range. The library has the same limits."""

_MAX_NUMBER = 2**64 - 1
_SPACE = r"[\t\n\f\r ]"
_SUFFIXES = r"(?P<prerelease>-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?P<build>\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_VERSION = re.compile(rf"v?(?P<major>[0-9]+)(?:\.(?P<minor>[0-9]+))?(?:\.(?P<patch>[0-9]+))?{_SUFFIXES}", re.ASCII)
_PATTERN = rf"v?(?P<major>[0-9|xX*]+)(?:\.(?P<minor>[0-9|xX*]+))?(?:\.(?P<patch>[0-9|xX*]+))?{_SUFFIXES}"
_COMPARATOR = re.compile(
    rf"(?P<separator>{_SPACE}*,?){_SPACE}*(?P<operator>!=|>=|=>|<=|=<|~>|=|>|<|~|\^|){_SPACE}*(?P<version>{_PATTERN})"
)
_UNNAMED_PATTERN = re.sub(r"\(\?P<\w+>", "(?:", _PATTERN)
_HYPHEN_RANGE = re.compile(rf"{_SPACE}*({_UNNAMED_PATTERN}){_SPACE}+-{_SPACE}+({_UNNAMED_PATTERN}){_SPACE}*")
_WILDCARDS = ("x", "X", "*")

Operator = Literal["=", "!=", ">", "<", ">=", "<=", "~", "^"]
_OPERATORS: Final[dict[str, Operator]] = {
    "": "=", "=": "=", "!=": "!=", ">": ">", "<": "<", ">=": ">=", "=>": ">=", "<=": "<=", "=<": "<=", "~": "~",
    "~>": "~", "^": "^",
}  # fmt: skip


@dataclass(frozen=True)
class Version:
    """A semantic version. Missing numbers are 0.

    Attributes:
        prerelease: The text after "-". "" for a release.
    """

    text: str
    major: int
    minor: int
    patch: int
    prerelease: str = ""

    @property
    def precedence(self) -> tuple[object, ...]:
        """The sort key without the build metadata. A pre-release is lower than its release."""
        return self.major, self.minor, self.patch, not self.prerelease, _get_prerelease_key(self.prerelease)

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The sort key. Versions with equal precedence are sorted by their text."""
        return self.precedence, self.text


def _get_prerelease_key(prerelease: str) -> tuple[tuple[bool, int, str], ...]:
    """Return the sort key of a pre-release. A number is lower than a text, and `rc` is lower than `rc.1`."""
    return tuple(
        (False, int(part), "") if part.isdecimal() and int(part) <= _MAX_NUMBER else (True, 0, part)
        for part in prerelease.split(".")
    )


@cached(16_384)
def parse_version(text: str) -> Version | None:
    """Return a version, e.g. of "1.2.3", "v1.2" or "1.0.0-rc.1+build5". Return None if the text is not a version."""
    match = _VERSION.fullmatch(text) if len(text) <= MAX_VERSION_CHARACTERS else None
    if match is None:
        return None
    major, minor, patch = (int(match[name] or 0) for name in ("major", "minor", "patch"))
    prerelease = (match["prerelease"] or "")[1:]
    has_leading_zero = any(part.isdecimal() and len(part) > 1 and part[0] == "0" for part in prerelease.split("."))
    if has_leading_zero or max(major, minor, patch) > _MAX_NUMBER:
        return None
    return Version(text, major, minor, patch, prerelease)


@dataclass(frozen=True)
class _Comparator:
    """One condition of a range, such as `>=1.2`.

    A number of `version` is 0 if the range omits this number or has a wildcard instead.
    """

    operator: Operator
    version: Version
    is_partial: bool = False
    has_any_minor: bool = False
    has_any_patch: bool = False

    def matches(self, version: Version) -> bool:
        """Return whether a version matches this condition. `VersionRange.matches` applies the rule for pre-releases."""
        match self.operator:
            case "=":
                return self._matches_tilde(version) if self.is_partial else self._compare(version) == 0
            case "!=":
                return self._differs(version)
            case ">":
                return self._is_greater(version)
            case "<":
                return self._compare(version) < 0
            case ">=":
                return self._compare(version) >= 0
            case "<=":
                return self._is_less_or_equal(version)
            case "~":
                return self._matches_tilde(version)
            case "^":
                return self._matches_caret(version)

    def _compare(self, version: Version) -> int:
        """Return 1 if the precedence of a version is higher than that of `self.version`, 0 if equal, -1 if lower."""
        found, bound = version.precedence, self.version.precedence
        return (found > bound) - (found < bound)

    def _differs(self, version: Version) -> bool:
        bound = self.version
        if not self.is_partial:
            return self._compare(version) != 0
        if version.major != bound.major or (version.minor != bound.minor and not self.has_any_minor):
            return True
        if self.has_any_minor:
            return False
        if self.has_any_patch:
            return version.prerelease != bound.prerelease
        return version.patch != bound.patch or self._compare(version) != 0

    def _is_greater(self, version: Version) -> bool:
        bound = self.version
        if not self.is_partial or (version.major == bound.major and not self.has_any_minor and not self.has_any_patch):
            return self._compare(version) > 0
        if version.major != bound.major:
            return version.major > bound.major
        return self.has_any_patch and version.minor > bound.minor

    def _is_less_or_equal(self, version: Version) -> bool:
        bound = self.version
        if not self.is_partial:
            return self._compare(version) <= 0
        return version.major < bound.major or (
            version.major == bound.major and (self.has_any_minor or version.minor <= bound.minor)
        )

    def _matches_tilde(self, version: Version) -> bool:
        bound = self.version
        if self._compare(version) < 0:
            return False
        is_any = (bound.major, bound.minor, bound.patch) == (0, 0, 0) and not self.has_any_minor
        if is_any and not self.has_any_patch:
            return True
        return version.major == bound.major and (self.has_any_minor or version.minor == bound.minor)

    def _matches_caret(self, version: Version) -> bool:
        bound = self.version
        if self._compare(version) < 0 or version.major != bound.major:
            return False
        if bound.major > 0 or self.has_any_minor:
            return True
        if version.minor != bound.minor:
            return False
        return bound.minor > 0 or self.has_any_patch or version.patch == bound.patch


@dataclass(frozen=True)
class VersionRange:
    """A version range. A version matches the range if it matches all comparators of one group."""

    text: str
    groups: tuple[tuple[_Comparator, ...], ...]

    def matches(self, version: Version) -> bool:
        """Return whether a version is in the range."""
        return any(
            (not version.prerelease or any(comparator.version.prerelease for comparator in group))
            and all(comparator.matches(version) for comparator in group)
            for group in self.groups
        )


@cached(1_024)
def parse_range(text: str) -> VersionRange | None:
    """Return the range that a text describes. Return None if the text is neither a version nor a range."""
    if len(text.encode(errors="surrogatepass")) > MAX_RANGE_CHARACTERS:
        return None
    group_texts = _HYPHEN_RANGE.sub(r">= \1, <= \2 ", text).split("||")
    if len(group_texts) > MAX_GROUPS:
        return None
    groups = [_parse_group(group_text) for group_text in group_texts]
    return VersionRange(text, tuple(groups)) if all(groups) else None  # type: ignore[arg-type]


def is_exact_version(text: str) -> bool:
    """Return whether a text selects one version and is not a range. "1.2" is a range, because it also selects 1.2.3."""
    match = _VERSION.fullmatch(text)
    return match is not None and match["patch"] is not None and parse_version(text) is not None


def sort_versions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are versions. The highest version is first."""
    versions = sorted(filter(None, map(parse_version, texts)), key=lambda version: version.sort_key, reverse=True)
    return tuple(version.text for version in versions)


def select_version(requested: VersionRange, texts: Iterable[str]) -> str | None:
    """Return the highest version in the range. Return None if no version matches.

    As in Helm, a version with exactly the text of the range takes precedence. For example, "1.0.0" selects 1.0.0 and
    not 1.0.0+build2.
    """
    versions = sort_versions(texts)
    if requested.text in versions:
        return requested.text
    matching = (text for text in versions if (version := parse_version(text)) and requested.matches(version))
    return next(matching, None)


def _parse_group(text: str) -> tuple[_Comparator, ...] | None:
    comparators: list[_Comparator] = []
    position, end = 0, len(text.rstrip("\t\n\f\r "))
    while position < end or not comparators:
        match = _COMPARATOR.match(text, position, end)
        if match is None:
            return None
        separator = match["separator"]
        if (not separator) if comparators else separator.endswith(","):
            return None
        comparator = _create_comparator(match)
        if comparator is None:
            return None
        comparators.append(comparator)
        position = match.end()
    return tuple(comparators)


def _create_comparator(match: re.Match[str]) -> _Comparator | None:
    operator = _OPERATORS[match["operator"]]
    major, minor, patch, prerelease = (match[name] or "" for name in ("major", "minor", "patch", "prerelease"))
    if major in _WILDCARDS:
        bound, wildcards = f"0.0.0{prerelease}", (True, False, False)
    elif minor in ("", *_WILDCARDS):
        bound, wildcards = f"{major}.0.0{prerelease}", (True, True, False)
    elif patch in ("", *_WILDCARDS):
        bound, wildcards = f"{major}.{minor}.0{prerelease}", (True, False, True)
    else:
        bound, wildcards = match["version"], (False, False, False)
    version = parse_version(bound)
    return _Comparator(operator, version, *wildcards) if version else None
