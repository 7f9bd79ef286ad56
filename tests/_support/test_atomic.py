import os
from pathlib import Path

import pytest

from normeq._support.atomic import replacing
from normeq.errors import FileError


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileError), replacing(tmp_path / "a") as temporary:
        temporary.with_name("missing").read_text()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_signal_at_the_moment_the_file_is_created_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = os.open

    def create_and_stop(path: Path, flags: int, mode: int = 0o777) -> int:
        os.close(create(path, flags, mode))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", create_and_stop)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a"):
        pass
    assert names(tmp_path) == []


def test_the_result_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_a_killed_run_left_is_removed_but_not_what_another_is_writing(tmp_path: Path) -> None:
    (tmp_path / ".a.0badcafe.partial").write_text("left by a killed run")
    with replacing(tmp_path / "a") as first:
        assert not (tmp_path / ".a.0badcafe.partial").exists()
        first.write_text("first")
        with replacing(tmp_path / "a") as second:
            assert first.exists()
            second.write_text("second")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "first"


def test_a_folder_that_does_not_exist_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"), replacing(tmp_path / "no" / "a"):
        pytest.fail("there is nowhere to write")
