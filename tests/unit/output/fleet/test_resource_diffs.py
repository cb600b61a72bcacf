"""Tests of the line diffs of resources: order, matched resources, hidden lines, marks and masked secrets."""

from __future__ import annotations

import time

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.fleet.resource_diffs import DiffLine, ResourceDiff, build_blocks, build_resource_diffs
from reconciler.output.fleet.target_names import TargetNames


def build(before: dict[str, str], after: dict[str, str]) -> tuple[ResourceDiff, ...]:
    old, new = (FileTree({path: File(text.encode()) for path, text in files.items()}) for files in (before, after))
    return build_resource_diffs(old, new, compare_packages(old, new))


def config_map(name: str, value: str, lines: int = 0) -> str:
    more = "".join(f"  line{number}: x\n" for number in range(lines))
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{more}  api: {value}\n"


def secret(value: str) -> str:
    return f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: {value}\n"


def get_text(line: DiffLine) -> str:
    return "".join(text for text, _ in line.parts)


def list_changed_lines(diff: ResourceDiff) -> list[str]:
    changed = [block for block in diff.blocks if block.is_changed]
    return [
        *(f"-{line.number} {get_text(line)}" for block in changed for line in block.old),
        *(f"+{line.number} {get_text(line)}" for block in changed for line in block.new),
    ]


def test_removed_resources_come_first_and_files_without_effect_last() -> None:
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\ninfo:\n  description: {}\n"
    diffs = build(
        {"Kptfile": kptfile.format("x"), "a.yaml": config_map("a", "1"), "b.yaml": config_map("b", "1")},
        {"Kptfile": kptfile.format("y"), "b.yaml": config_map("b", "2"), "c.yaml": config_map("c", "1")},
    )

    assert [(diff.title, diff.change_type, diff.is_noise) for diff in diffs] == [
        ("ConfigMap a", "removed", False),
        ("ConfigMap b", "changed", False),
        ("ConfigMap c", "added", False),
        ("Kptfile", "changed", True),
    ]


def test_a_kptfile_with_changed_functions_has_an_effect() -> None:
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\npipeline:\n  mutators:\n  - image: {}\n"
    (diff,) = build({"Kptfile": kptfile.format("set-labels")}, {"Kptfile": kptfile.format("set-namespace")})

    assert not diff.is_noise


def test_a_resource_that_moves_to_another_file_has_only_its_changed_lines() -> None:
    diff, *others = build(
        {"all.yaml": f"{config_map('a', '1')}---\n{config_map('b', '1')}"},
        {"a.yaml": config_map("a", "1"), "b.yaml": config_map("b", "2")},
    )

    assert diff.file == "b.yaml"
    assert list_changed_lines(diff) == ["-6   api: 1", "+6   api: 2"]
    assert all(other.is_noise for other in others)


def test_only_three_equal_lines_around_a_change_are_shown() -> None:
    (diff,) = build({"a.yaml": config_map("a", "old", 20)}, {"a.yaml": config_map("a", "new", 20)})

    assert [block.hidden_count for block in diff.blocks] == [22, 0, 0]
    assert [line.number for line in diff.blocks[1].new] == [23, 24, 25]


LONG_OLD, LONG_NEW = (" ".join(f"{side}{number} =" for number in range(40)) for side in "ab")


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        pytest.param("web:1.8", "web:1.9", (["8"], ["9"]), id="one-word"),
        pytest.param("--size 2 --zone eu --all", "--size 3 --zone us --all", (["2", "eu"], ["3", "us"]), id="several-words"),
        pytest.param("cpu: 100m", "cpu: 150m", (["100m"], ["150m"]), id="whole-word"),
        pytest.param("a b", "a x b", ([], ["x "]), id="added-word"),
        pytest.param("-c old", "-c", ([" old"], []), id="removed-word"),
        pytest.param("größe: 1", "größe: 2", (["1"], ["2"]), id="letters-of-other-languages"),
        pytest.param(f"same {LONG_OLD} end", f"same {LONG_NEW} end",
                     ([LONG_OLD.removesuffix(" =")], [LONG_NEW.removesuffix(" =")]), id="too-many-words"),
        pytest.param("x" * 501, "y" * 501, ([], []), id="too-long"),
    ],
)  # fmt: skip
def test_each_word_that_differs_is_marked(old: str, new: str, marked: tuple[list[str], list[str]]) -> None:
    (block,) = build_blocks([old], [new])

    assert tuple([text for text, is_marked in line.parts if is_marked] for line in (*block.old, *block.new)) == marked
    assert [line.text for line in (*block.old, *block.new)] == [old, new]


def test_values_of_secrets_are_masked_and_their_changes_are_visible() -> None:
    (diff,) = build({"a.yaml": secret("first-value")}, {"a.yaml": secret("second-value")})

    text = " ".join(list_changed_lines(diff))
    assert "password" in text
    assert "-value" not in text


PLUGIN = (
    "apiVersion: greenhouse.sap/v1alpha1\nkind: Plugin\nmetadata:\n  name: a\nspec:\n  optionValues:\n"
    "    - name: token\n      {}\n    - name: mode\n      value: fast\n"
)
REFERENCE = "valueFrom: {secret: {name: a, key: token}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [(REFERENCE, "value: canary-1"), ("value: canary-1", REFERENCE)],
    ids=["a-person-wrote-the-value", "the-value-becomes-a-reference"],
)
def test_the_plain_value_of_a_secret_option_is_masked(before: str, after: str) -> None:
    files = [FileTree({"plugin.yaml": File(PLUGIN.format(value).encode())}) for value in (before, after)]
    diff = build_resource_diffs(*files, compare_packages(*files))[0]
    file_diffs = "".join(text for _, text in format_file_diffs(*files))

    texts = [" ".join(list_changed_lines(diff)), file_diffs]
    assert [text for text in texts if "canary" in text or "value: " not in text] == []


def test_a_resource_with_too_many_lines_has_a_note() -> None:
    (diff,) = build({"a.yaml": config_map("a", "1", 3_000)}, {"a.yaml": config_map("a", "2", 3_000)})

    assert diff.blocks == ()
    assert "more than 3000 lines" in diff.note


def test_a_resource_with_too_many_characters_has_a_note() -> None:
    (diff,) = build({"a.yaml": config_map("a", "v1")}, {"a.yaml": config_map("a", "v" * 600_000)})

    assert (diff.blocks, diff.note) == ((), "The resource is not shown, because it has more than 500000 characters.")


def write_items(value: str) -> str:
    items = "".join(f"- name: n{number}\n  value: {value}\n  kind: a\n" for number in range(900))
    return f"apiVersion: example.com/v1\nkind: Table\nmetadata:\n  name: a\nspec:\n{items}"


def test_a_long_list_with_a_change_in_each_item_is_compared_in_seconds() -> None:
    start = time.process_time()
    old, new = (write_items(value).splitlines() for value in ("1", "2"))
    blocks = [block for block in build_blocks(old, new) if block.is_changed]

    assert time.process_time() - start < 10
    assert len(blocks) == 900
    assert {len(block.old) for block in blocks} == {len(block.new) for block in blocks} == {1}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param("a" * 300, "a" * 300, 0, id="equal"),
        pytest.param("a" * 300 + "b", "a" * 300 + "c", 2, id="end"),
        pytest.param("b" + "a" * 300, "c" + "a" * 300, 2, id="start"),
        pytest.param("a" * 300, "a" * 301, 1, id="added"),
        pytest.param("", "a" * 300, 300, id="new"),
    ],
)
def test_equal_lines_at_both_ends_are_not_changed(old: str, new: str, changed: int) -> None:
    blocks = [block for block in build_blocks(list(old), list(new)) if block.is_changed]

    assert sum(len(block.old) + len(block.new) for block in blocks) == changed


def test_a_file_without_resources_has_the_lines_of_the_file() -> None:
    (diff,) = build({"notes.txt": "one\ntwo\n"}, {"notes.txt": "one\nthree\n"})

    assert (diff.title, list_changed_lines(diff)) == ("notes.txt", ["-2 two", "+2 three"])


def test_added_lines_have_the_pointers_of_their_values() -> None:
    (diff,) = build({"a.yaml": config_map("a", "1")}, {"a.yaml": config_map("a", "2")})
    (block,) = (block for block in diff.blocks if block.is_changed)

    assert diff.reference == "ConfigMap/a"
    assert [[line.pointer for line in side] for side in (block.old, block.new)] == [[""], ["/data/api"]]


def test_a_masked_value_has_its_pointer() -> None:
    (diff,) = build({"a.yaml": secret("one")}, {"a.yaml": secret("two")})

    pointers = [line.pointer for block in diff.blocks if block.is_changed for line in block.new]
    assert pointers == ["/stringData/password"]


def test_a_file_in_which_only_a_comment_changes_is_reformatted() -> None:
    (diff,) = build({"a.yaml": config_map("a", "1")}, {"a.yaml": f"# comment\n{config_map('a', '1')}"})

    assert (diff.is_reformatted, diff.is_noise, diff.reference) == (True, True, "")


def test_the_digest_of_a_diff_depends_on_its_lines_and_not_on_names_of_targets() -> None:
    def compute(target: str, value: str, name: str = "a") -> str:
        (diff,) = build({"a.yaml": config_map(name, "old")}, {"a.yaml": config_map(name, value)})
        return diff.compute_digest(TargetNames(target))

    assert compute("lisbon", "api.lisbon") == compute("porto", "api.porto")
    assert compute("lisbon", "api.lisbon") != compute("porto", "api.lisbon")
    assert compute("lisbon", "x") != compute("lisbon", "y")
    assert compute("lisbon", "x", "a") != compute("lisbon", "x", "b")
