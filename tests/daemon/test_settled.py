"""The memory of the last pass in the cache: whatever stands in its place is as good as no memory."""

from pathlib import Path

from reconciler.daemon.settled import InCache


def test_a_folder_in_place_of_the_file_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "settled.json"
    (file / "inside").mkdir(parents=True)
    memory = InCache(file)

    assert memory.recall() is None
    memory.keep(None)

    assert not file.exists()
