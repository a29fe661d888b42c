"""Which subjects are right, and which right one is nearest to a wrong one."""

from __future__ import annotations

import subprocess

import pytest

from yolo_fs.artifacts.naming import GITS_OWN, first_line, is_sound, nearest
from yolo_fs.core.ids import TYPES
from yolo_fs.hooks.script import script

PRESCRIBED = [
    "docs(01): critique and gap analysis",
    "docs(01): plan 01-02",
    "docs(01): research findings",
]
SUBJECTS = [
    *(f"{type_}(01-02): text" for type_ in TYPES), *(f"{beginning}x" for beginning in GITS_OWN),
    "", " ", "x", "feat", "feat:", "feat: x", "feat(): x", "feat(x):", "feat(x): ", "feat(x):  y", "feat(x):y",
    "feat (x): y", "feat(x)!: y", "feat(x)y: z", "feat((x)): y", "feat(x(): y", "feat(x)): y", "Feat(x): y", "wip(x): y",
    "feat(a b c): y", "feat(x): y (z): w", "feat(é): ü", "fix(x)", "fix)x(: y", "$(touch x)(x): y", "feat(`id`): $HOME",
    "-n", "\\", "feat(x\\): y", "mergefeat(x): y", "fixup!feat(x): y",
]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("docs(01) critique and gap analysys", PRESCRIBED[0]),
        ("Docs: plan 01-02", PRESCRIBED[1]),
        ("fixed the login", "fix(01-02): fixed the login"),
        ("fix the login of 03-04", "fix(03-04): fix the login of 03-04"),
        ("refactr(01-01): split", "refactor(01-01): split"),
        ("feat [01-01] - rotate", "feat(01-01): rotate"),
        ("nothing known", "chore(01-02): nothing known"),
        ("feat(x):", "feat(x): say what was done"),
    ],
)
def test_the_nearest_right_subject(wrong: str, right: str) -> None:
    assert not is_sound(wrong)
    assert nearest(wrong, PRESCRIBED, "01-02") == right


@pytest.mark.parametrize("wrong", [subject for subject in SUBJECTS if not is_sound(subject)])
def test_what_is_proposed_is_always_right_itself(wrong: str) -> None:
    assert is_sound(nearest(wrong, (), "01-02"))


def test_the_subject_is_the_first_line_that_git_keeps() -> None:
    assert first_line("\n# a comment\n  \nfeat(x): y  \n\nbody\n") == "feat(x): y"
    assert first_line("# only a comment\n") == ""
    assert first_line("; a comment\n# a subject\n", ";") == "# a subject"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_shell_and_python_call_the_same_subjects_right(shell: str) -> None:
    function = (
        script("none", "none", ()).decode().partition("is_sound() {")[2].partition("\n}\n")[0]
    )
    program = f'is_sound() {{{function}\n}}\nfor one; do is_sound "$one" && echo right || echo wrong; done'
    said = subprocess.run(
        [shell, "-c", program, shell, *SUBJECTS], capture_output=True, text=True, check=True
    )
    shells = dict(zip(SUBJECTS, said.stdout.split(), strict=True))
    assert {subject for subject, word in shells.items() if word == "right"} == set(
        filter(is_sound, SUBJECTS)
    )
