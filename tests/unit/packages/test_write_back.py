"""Property tests of written resources: the files contain every change, and the rest keeps its bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.packages.functions.function import Item
from reconciler.packages.package import Package
from reconciler.packages.write_back import write_back
from tests.support.examples import examples
from tests.unit.packages.builders import KPTFILE, build_tree, read_texts

FILES = ("a.yaml", "b.yaml", "c/d.yaml")
names = st.integers(0, 10**6).map("n{}".format)
fates = st.sampled_from(["stays", "changes", "goes", "moves"])
file_fates = st.fixed_dictionaries({path: st.lists(fates, max_size=4) for path in FILES})


def format_document(path: str, index: int) -> str:
    return f"# of {path}\nkind: K\nmetadata:   # {index}\n  name: '{index}'\n\nspec: {{}}\n"


def change_item(item: Item, fate: str) -> Item:
    match fate:
        case "changes":
            return item.with_values([(("spec", "x"), item.index)])
        case "moves":
            return item.with_location("new.yaml", item.index + 10 * FILES.index(item.file))
        case _:
            return item


@settings(max_examples=examples(100), deadline=None)
@given(file_fates, st.lists(names, max_size=2, unique=True))
def test_write_back(world: dict[str, list[str]], created: list[str]) -> None:
    contents = {
        path: "---\n".join(format_document(path, n) for n in range(len(world[path]))) for path in FILES if world[path]
    }
    files = build_tree({"Kptfile": KPTFILE, "t.txt": "x", **contents})
    read = Package(files).resources
    given_items = [Item("", r.path, r.index, r.data, number, r.document) for number, r in enumerate(read)]
    lots = [world[item.file][item.index] if item.file in FILES else "stays" for item in given_items]
    items = [change_item(item, fate) for item, fate in zip(given_items, lots, strict=True) if fate != "goes"]
    items += [Item("", "a.yaml", 50 + n, {"kind": "K", "metadata": {"name": name}}) for n, name in enumerate(created)]

    after = write_back(files, read, items, prune=True)

    expected = sorted((((item.file, item.index), item.data) for item in items), key=lambda pair: pair[0])
    assert [(r.file, r.data) for r in Package(after).resources] == [(place[0], data) for place, data in expected]
    untouched = {path for path in contents if set(world[path]) == {"stays"} and not (created and path == "a.yaml")}
    assert {path: after[path] for path in untouched} == {path: files[path] for path in untouched}
    for item, fate in zip(given_items, lots, strict=True):
        if fate in ("stays", "moves") and item.file in FILES:
            place = "new.yaml" if fate == "moves" else item.file
            assert format_document(item.file, item.index) in read_texts(after)[place]
