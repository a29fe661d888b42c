"""`scripts/test --changed` runs the tests that are near to what was changed."""

from __future__ import annotations

from tools import changed


def test_the_tests_of_a_verb_are_near_to_the_module_that_it_drives() -> None:
    """They start it as a program, and import nothing of it."""
    near = changed.tests_near(["yolo_fs/company/runner.py"])
    assert "tests/e2e/test_go.py" in near and "tests/e2e/test_worktrees.py" in near


def test_a_test_of_another_room_is_not_near_by_its_name() -> None:
    assert "tests/git/test_runner.py" in changed.tests_near(["yolo_fs/git/runner.py"])
    assert "tests/git/test_runner.py" not in changed.tests_near(["yolo_fs/company/runner.py"])


def test_a_changed_test_is_its_own() -> None:
    assert changed.tests_near(["tests/web/test_home.py"])[0] == "tests/web/test_home.py"
