"""The small tier of the fuzzing: a few thousand trials, and proof that the second opinion is one.

`scripts/fuzz` runs a million. See docs/dev/faults.md#f53 and #f54.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz import handoff, mutations, reference, trial
from tests.fuzz.campaign import Share, Tally, run_share, shares
from tests.fuzz.growth import slope
from tests.fuzz.handoff import read_handoff
from tests.fuzz.mutations import PIECES, Specimen, disturb
from tests.fuzz.reference import Rules, is_object, read_lines
from tests.fuzz.trial import (
    Difference,
    Sort,
    compare,
    make_hooked,
    try_envelope,
    try_handoff,
    try_hook,
    try_lines,
    try_merge,
    try_toon,
)
from tests.system import recogniser
from yolo_fs.core.reasons import Reason
from yolo_fs.system import front_matter, readers, toon

FIXTURES = Path(__file__).parents[2] / "fixtures"
FRONT_MATTERS = sorted((FIXTURES / "front_matter").glob("*/*.md"))
READER = sorted((FIXTURES / "reader").glob("*/*.json*"))
OF_THE_FIXTURES = Rules(line_bytes=4096, file_bytes=16384, lines=1000)


def test_a_few_thousand_files_are_judged_as_the_second_opinion_judges_them() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    tally = run_share(Share(f"{seed}:0", 2_000, 300))

    assert tally.kept == []
    assert tally.trials["lines read"] > 700
    assert tally.trials["front matters accepted"] > 10
    assert min(tally.trials["shapes accepted"], tally.trials["shapes refused"]) > 150


@pytest.mark.parametrize("case", READER, ids=lambda case: case.name)
def test_the_second_opinion_knows_the_examples_of_the_reader(case: Path) -> None:
    data = case.read_bytes()
    if case.suffix == ".json":
        is_sound = is_object(data, OF_THE_FIXTURES)
    else:
        is_sound = read_lines(data, OF_THE_FIXTURES).is_sound

    assert is_sound == (case.parent.name == "ok")


@pytest.mark.parametrize("case", FRONT_MATTERS, ids=lambda case: case.name)
def test_the_second_opinion_knows_the_tricks_of_front_matter(case: Path) -> None:
    assert (read_handoff(case.read_bytes()) is not None) == (case.parent.name == "ok")


@pytest.mark.parametrize(
    "module", [reference, handoff, recogniser], ids=lambda module: module.__name__
)
def test_the_second_opinion_knows_nothing_of_the_product(module: object) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())  # type: ignore[attr-defined]
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    ]

    assert [
        name for name in imported if name.startswith(("yolo_fs", "yaml", "pydantic", "jsonlines"))
    ] == []


def test_a_reader_that_accepts_too_much_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = readers.read_lines
    monkeypatch.setattr(
        readers, "read_lines", lambda data, *more: real(data.replace(b"NaN", b"0.5"), *more)
    )

    sorts = {one.sort for one in try_lines(Specimen("", b'{"a":NaN}\n'))}

    assert sorts == {Sort.WRONG_ACCEPT}


def test_a_reader_that_raises_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_matter, "read_front_matter", lambda *_: [][0])

    assert [one.sort for one in try_handoff(b"---\n")] == [Sort.CRASH]


def test_a_shape_that_the_schema_refuses_is_found_out() -> None:
    value = json.loads((FIXTURES / "examples/artifacts/summary/ok/complete.jsonl").read_text())

    assert list(compare("artifact/summary", frozenset(), value)) == []
    assert [one.sort for one in compare("artifact/summary", frozenset(), value | {"s": 1})] == [
        Sort.WRONG_ACCEPT
    ]
    assert [
        one.sort for one in compare("artifact/summary", frozenset({Reason.WRONG_TYPE}), value)
    ] == [Sort.WRONG_REJECT]


@pytest.mark.parametrize("target", ["toon", "envelope", "merge", "hook"])
def test_what_the_guided_search_begins_with_and_its_mutants_differ_nowhere(
    target: str, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance, seeds = random.Random(seed), mutations.seeds_of(target)
    repository = make_hooked(str(tmp_path))
    trials: dict[str, Callable[[bytes], Iterator[Difference]]] = {
        "toon": try_toon,
        "envelope": try_envelope,
        "merge": try_merge,
        "hook": lambda data: try_hook(data, repository),
    }
    tried = [*chance.sample(seeds, min(60, len(seeds)))]
    tried += [disturb(chance, chance.choice(seeds), PIECES, (1, 2, 5)) for _ in range(100)]

    assert [each for data in tried for each in trials[target](data)] == []


def test_a_merge_that_loses_a_record_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "merge_texts", lambda _artifact, _base, ours, _theirs: ours)

    sorts = {each.sort for each in try_merge(b'\n=\n{"id":"1"}\n\n=\n{"id":"2"}\n')}

    assert sorts == {Sort.WRONG_VALUE}


def test_a_document_that_reads_otherwise_when_written_again_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toon, "write_toon", lambda _value: "a: 2\n")

    assert [each.sort for each in try_toon(b"a: 1\n")] == [Sort.WRONG_VALUE]


def test_a_seed_gives_the_same_trials_again() -> None:
    bred = [[one(random.Random(7)) for one in (mutations.mutant, mutations.made_up)] for _ in "12"]

    assert bred[0] == bred[1]


def test_the_shares_of_a_campaign_add_up() -> None:
    cut = shares(1, 1_000_001, 99_999)

    assert (sum(one.lines for one in cut), sum(one.handoffs for one in cut)) == (1_000_001, 99_999)
    assert len({one.seed for one in cut}) == len(cut)


def test_tallies_add_up_wrongs_and_all() -> None:
    one = Tally()
    one.take(iter(try_handoff(b"")))
    one.trials.update(["lines"])
    total = Tally()
    total.add(one)
    total.add(one)

    assert (total.trials["lines"], total.wrong.total()) == (2, 0)


def test_a_square_has_the_slope_two() -> None:
    assert slope([10, 100, 1000], [1, 100, 10_000]) == pytest.approx(2)
