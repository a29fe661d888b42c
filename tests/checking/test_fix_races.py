"""`fix --write` on a file that somebody is writing: the file is what they wrote, whole, and never a mixture.

Nothing of the system replaces a file only if it is the same still: a writer who comes between the last look and the
rename, some microseconds later, may be overtaken.

`YOLO_RACES=10000` sets how many races are run, `YOLO_SEED` repeats a run.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from pathlib import Path

import pytest

from yolo_fs.checking.fix import fix
from yolo_fs.checking.validate import Validator

NAME = "code-review.jsonl"
RACES = int(os.environ.get("YOLO_RACES", "60"))


def review(number: int) -> bytes:
    """Return a review that can be repaired, different for each number."""
    lines: list[dict[str, object]] = [
        {"plan": "01-01", "r": "approved", "cycle": "1", "dt": "2026-02-19"}
    ]
    lines += [
        {"file": f"src/{number}.ts", "line": at, "sev": "nit", "issue": "long " * 20, "sug": "x"}
        for at in range(12)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def write(path: Path, data: bytes, rng: random.Random) -> None:
    """Write as agents do: in place in two pieces, or by a rename."""
    time.sleep(rng.choice((rng.uniform(0, 0.004), rng.uniform(0, 0.1))))
    if rng.random() < 0.3:
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        os.replace(fresh, path)
        return
    cut = rng.randrange(len(data))
    with path.open("wb", buffering=0) as file:
        file.write(data[:cut])
        time.sleep(rng.uniform(0, 0.002))
        file.write(data[cut:])


@pytest.mark.timeout(300 + RACES)
def test_the_file_is_what_its_writer_wrote_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("YOLO_SEED", "14"))
    rng = random.Random(seed)
    path = tmp_path / ".yolo-planning/phases/01-auth" / NAME
    path.parent.mkdir(parents=True)
    (path.parent / "01-01.plan.jsonl").write_text("{}\n")
    written, overtaken = 0, 0
    validator = Validator(str(tmp_path))
    for number in range(RACES):
        old, new = review(2 * number), review(2 * number + 1)
        path.write_bytes(old)
        [of_new] = [
            fix(validator, validator.again(str(path), NAME, new), str(path), write=False).after
        ]
        checked = next(iter(validator.paths([str(path)])))
        writer = threading.Thread(target=write, args=(path, new, random.Random(rng.random())))
        writer.start()
        time.sleep(rng.uniform(0, 0.003))
        fixed = fix(validator, checked, str(path), write=True)
        writer.join()
        now = path.read_bytes()
        assert now in (new, fixed.after, of_new), (seed, number)
        written += fixed.was_written
        overtaken += now not in (new, of_new)
    validator.close()
    with capsys.disabled():
        print(f"\nYOLO_SEED={seed} {written=} {overtaken=}")
    assert 0 < written < RACES
    assert overtaken <= RACES / 20
