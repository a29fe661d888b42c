"""What a command touches, as far as its words tell."""

from __future__ import annotations

import os
import random
import subprocess

import pytest

from yolo_fs.hooks.outputs import OUTPUTS
from yolo_fs.hooks.shell import simple_commands
from yolo_fs.hooks.touches import read_command
from yolo_fs.protocol.verbs import Whose

S = ".yolo-planning/state.json"
WRITES = [
    f"echo x > {S}", f"echo x>{S}", f"echo x >> {S}", f"cat a 2>{S}", f"ls &> {S}", f"true && echo x > {S}",
    f"(cd src; echo) > {S}", f"tee {S} < a", f"a | tee -a {S}", f"rm -f {S}", f"mv a {S}", f"mv {S} a", f"cp a {S}",
    f"touch {S}", f"sed -i '' s/a/b/ {S}", f"sed -i.bak s/a/b/ {S}", f"dd if=a of={S}", f"truncate -s 0 {S}",
    f"sudo rm {S}", f"A=1 B=2 touch {S}", f"find . | xargs rm {S}", f"sh -c 'echo x > {S}'", f'bash -lc "rm {S}"',
    f"git rm {S}", f"git checkout HEAD -- {S}", f"git restore {S}", f"ln -sf a {S}", f"install -m 600 a {S}",
    f"python -c \"open('{S}','w')\"", f"node -e \"fs.writeFileSync('{S}', '')\"", f"cat <<E > {S}\nx\nE",
    f"cat > {S} <<'E'\nx\nE\n", f"echo 'open {S}\n' > {S}", f"/bin/rm {S}", f"ls\nrm {S}", f"ls \\\n && rm {S}",
    "cd .yolo-planning && rm state.json", "cd .yolo-planning; cd .; echo x > ./state.json",
    f"chmod 0 {S}", f"chmod -x {S}", f"chmod -Rw {S}", f"chmod -- -x {S}", f"chmod --reference=a {S}", f"chown --reference=a {S}",
    f"chgrp x {S}", f"chattr -i {S}", f"chattr -R +i {S}", f"setfacl -b {S}", f"setfacl -m u:x:r {S}",
    f"echo {S} | xargs rm", f"echo -n {S} | xargs -I{{}} rm -f {{}}", f"printf '%s\\0' {S} | xargs -0 touch", f"printf '{S}\\n' | sudo xargs rm",
    "echo state.json | xargs -I% rm .yolo-planning/state.json", "echo state | xargs -I{} rm .yolo-planning/{}.json", f"echo 'rm {S}' | sh", f"echo \"open('{S}','w')\" | python3",
    f"tar cf {S} a", f"tar -cf {S} a", f"curl -sSLo {S} http://a", f"sponge -a {S}", f"ruby -i -pe x {S}",
    f"rsync -t a {S}", "git --work-tree=.yolo-planning checkout HEAD -- state.json", "GIT_WORK_TREE=.yolo-planning git checkout -f HEAD -- state.json", f"git diff --output={S}", f"git log --output {S}", f"rename .json .x {S}",
    f"tar -xf a.tar {S}", f"tar xzf a.tgz {S}", "tar -C .yolo-planning -xf a.tar x/.yolo-planning/../../state.json", f"unzip a.zip {S}",
    f"*** Begin Patch\n*** Delete File: {S}\n*** End Patch",
    f"*** Begin Patch\n*** Update File: a\n*** Move to: {S}\n*** End Patch",
]  # fmt: skip
NO_WRITES = [
    f"cat {S}", f"cat < {S}", f"jq . {S} > /tmp/x", f"cp {S} /tmp/x", f"git add {S}", f"git log -- {S}",
    f"git show HEAD:{S}", f"sed -n 1p {S}", f"grep x {S} 2>/dev/null", f"echo 'rm {S}'", f"cat <<E > a\nrm {S}\nE",
    f"chmod --reference={S} a", f"setfacl -M {S} a", f"python -c \"print(open('{S}').read())\"", "git checkout main", "git checkout -b a/b.c", "echo a > b", "",
]  # fmt: skip


def written(command: str) -> set[str]:
    return {os.path.normpath(touch.path) for touch in read_command(command).touches if touch.writes}


@pytest.mark.parametrize("command", WRITES)
def test_a_write_is_seen(command: str) -> None:
    assert S in written(command)


@pytest.mark.parametrize("command", NO_WRITES)
def test_what_is_only_read_or_spoken_of_is_no_write(command: str) -> None:
    assert S not in written(command)


@pytest.mark.parametrize(
    "command",
    [
        "tar -xf a.tar -C {}", "tar xf a.tar -C{}", "tar --directory={} -xf a.tar", "bsdtar -x -C {} -f a.tar", "git archive HEAD | tar -x -C {}",
        "cd {} && tar xf ../a.tar", "unzip a.zip -d {}", "unzip -o -d {} a.zip", "cd {}; unzip ../a.zip", "cpio -idm -D {} < a", "7z x a.7z -o{}",
        "unrar x a.rar {}/", "patch -d {} -p1 < a.diff", "cd {} && patch -p1 < a.diff",
        "python -m zipfile -e a.zip {}", "python3.11 -m tarfile --extract a.tar {}", "cd {} && python -m tarfile -e ../a.tar",
        "jar xf a.jar -C {}", "cd {} && jar xf ../a.jar", "jar --extract --file a.jar --dir {}", "ditto a {}", "ditto -x -k a.zip {}",
        "bsdcpio -i -D {}", "git archive HEAD | (cd {} && tar x)", "git apply --directory={} a.diff", "git apply --directory {} a.diff",
        "git checkout-index -a -f --prefix={}/", "git read-tree -u --prefix={}/ a", "git format-patch -o {} HEAD~1",
        "rsync -a a/ {}", "rsync -a --backup-dir={} a b", "cp -r a/. {}", "cp -rT a {}", "wget -P {} http://a/b",
        "curl -O --output-dir {} http://a/b", "docker cp a:/b {}", "aws s3 sync s3://a {}", "pip download -d {} a", "unar -o {} a.rar",
    ],
)  # fmt: skip
def test_any_file_of_a_folder_may_be_written_over_that_is_filled(command: str) -> None:
    for folder in (".yolo-planning", ".yolo-planning/phases/01-auth", "src"):
        touches = read_command(command.format(folder)).touches
        filled = {os.path.normpath(touch.path) for touch in touches if touch.effect == "fill"}
        assert folder in filled


@pytest.mark.parametrize("name", OUTPUTS)
def test_each_program_that_writes_where_an_argument_says_is_seen_by_each_of_its_arguments(
    name: str,
) -> None:
    row, program = OUTPUTS[name], _called(name)
    word = row.only_with.split()[:1]
    for option in row.files.split():
        assert S in written(" ".join((program, option, S, "a")))
        if option.startswith("--"):
            assert S in written(" ".join((program, f"{option}={S}", "a")))
    for option in row.folders.split():
        assert ".yolo-planning" in written(" ".join((program, option, ".yolo-planning")))
    before = ["a", "b"][: (row.operands.start or 0) % 3 if row.operands.start != -1 else 2]
    for last in [S] if row.operands != slice(0, 0) else []:
        given = before[len(word) if row.operands.start in (1, 2) else 0 :]
        assert S in written(" ".join((program, *word, *given, last)))
        if word:
            assert S not in written(" ".join((program, *given, last)))


def _called(name: str) -> str:
    """Return how a program of the table is called."""
    modules = ("zipfile", "tarfile", "json.tool", "zipapp")
    return f"python3 -m {name}" if name in modules else name.replace("git-", "git ")


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("find .yolo-planning -type f | xargs rm", ".yolo-planning/**/*"),
        ("find . -name '*.json' -print0 | xargs -0 rm", "**/*.json"),
        ("ls .yolo-planning/*.json | xargs rm -f", ".yolo-planning/*.json"),
        ("ls -d .yolo-planning | xargs rm -r", ".yolo-planning"),
        ("cd .yolo-planning && ls | xargs rm", ".yolo-planning/[!.]*"),
        ("ls .yolo-planning | xargs -I{} rm .yolo-planning/{}", ".yolo-planning/[!.]*"),
    ],
)
def test_what_is_listed_is_what_the_program_behind_it_touches(command: str, pattern: str) -> None:
    assert pattern in written(command)


@pytest.mark.parametrize(
    "command",
    [
        f"cat {S}", f"head -1 {S}", f"cat < {S}", f"cp {S} a", f"sh -c 'cat {S}'",
        f"[[ -n $(cat {S}) && a > b ]]", f"(( 1 + $(wc -l < {S}) ))", f"[[ a == `cat {S}` ]]", f"diff a {S}",
        f"flock /tmp/x -c 'cat {S}'", f"watch -n1 cat {S}", f"watch 'cat {S} | wc'", f"xargs cat <<< {S}",
        f"node --env-file={S} a.js", f"docker run --env-file {S} a", f"wget --post-file={S} http://a", f"grep -f {S} a",
        f"bash {S}", f"bash --rcfile {S} -i", f"curl file:///{S}",
    ],
)  # fmt: skip
def test_a_read_is_seen(command: str) -> None:
    assert S in {
        touch.path.lstrip("/") for touch in read_command(command).touches if not touch.writes
    }


@pytest.mark.parametrize(
    "command",
    [
        "yolo-fs stop", "uvx yolo-fs stop", "uvx --from a yolo-fs stop", "pipx run --spec a yolo-fs stop", "chroot a yolo-fs stop",
        "setpriv --no-new-privs yolo-fs stop", "flock /tmp/x -c 'yolo-fs stop'", "xargs yolo-fs <<< stop",
    ],
)  # fmt: skip
def test_a_verb_of_ours_is_seen_whatever_program_runs_it(command: str) -> None:
    assert [use.verb.whose for use in read_command(command).own] == [Whose.PERSON]


@pytest.mark.parametrize("command", ["pip install yolo-fs", "which yolo-fs", "echo yolo-fs stop", "[[ a > b ]]", "(( a > b ))"])  # fmt: skip
def test_what_runs_and_writes_nothing_of_ours_is_let_through(command: str) -> None:
    reading = read_command(command)
    assert not reading.own and not written(command)


def test_shared_memory_holds_files_and_devices_are_none() -> None:
    assert written("echo x | tee /dev/null /dev/shm/team/a /dev/shm/../tty") == {"/dev/shm/team/a"}


def test_no_command_makes_it_fail() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed={seed}")
    rng = random.Random(seed)
    pieces = [
        *"<>|&;()'\"\\ \n-$`*#=",
        "<<E",
        "E\n",
        "rm",
        "cd",
        "sh",
        "-c",
        "git",
        "checkout",
        "--",
        S,
        "a.b",
        "\0",
        "é",
        "$'\\",
    ]
    for _ in range(5_000):
        read_command(
            " ".join(rng.choices(pieces, k=rng.randrange(12))) + "".join(rng.choices(pieces, k=3))
        )


def test_the_escapes_of_c_are_read_as_bash_reads_them() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed={seed}")
    rng = random.Random(seed)
    plain = [*"abcefuxUAF0123789{}?-é \n"]
    pieces = [*plain, *(f"\\{char}" for char in [*plain, *"EnrtvNo'\"\\"]), "\\c\\\\"]
    spelled = [f"$'a{''.join(rng.choices(pieces, k=rng.randrange(1, 9)))}.'" for _ in range(2_000)]
    said = subprocess.run(
        ["bash"],
        input="".join(f"printf '%s\\0' {word}\n" for word in spelled).encode(),
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    bash = said.stdout.decode(errors="replace").split("\0")[:-1]
    ours = [simple_commands(f"printf {word}", {})[0].words[1].text for word in spelled]
    assert dict(zip(spelled, ours, strict=True)) == dict(zip(spelled, bash, strict=True))


@pytest.mark.parametrize(
    "command",
    [
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null git commit -m x",
        "export GIT_CONFIG_KEY_0=core.hooksPath; git commit -m x",
        "GIT_CONFIG_PARAMETERS=\"'core.hookspath'='/x'\" git commit -m x",
    ],
)
def test_hooks_that_are_moved_by_the_environment_are_seen(command: str) -> None:
    assert read_command(command).unchecked
