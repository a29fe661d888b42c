"""What agents get wrong, each mended in one turn by whoever does what the refusal says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.obedient import Obedient, said_by
from tests.e2e.repo import Repo
from tests.support import forked
from yolo_fs.artifacts.catalogue import find_kind
from yolo_fs.artifacts.table import ARTIFACTS, Artifact
from yolo_fs.checking.examples import example_for, example_of
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Finding, Level, Reason

PHASE = "01-auth"
FOLDER = f".yolo-planning/phases/{PHASE}"
FINDING = {
    "id": "C1", "cat": "gap", "sev": "major", "q": "Why?", "ctx": "Login", "sug": "Ask", "st": "open",
}  # fmt: skip


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def records_of(kind: str, name: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in example_for(name or kind).splitlines()]


GOOD = lines(FINDING)
HEADER, FIRST, SECOND = records_of("plan", "01-01.plan.jsonl")[:3]
[SUMMARY] = [
    record | {"ch": [], "s": "partial"} for record in records_of("", "01-01.summary.jsonl")
]
TEST_PLAN = records_of("test-plan")[0]
RESEARCH = records_of("research")[0]
REVIEW = records_of("code-review")[0]
QA = records_of("qa-code")[0]
ARCHITECTURE = example_of("architecture")
SIGNOFF = records_of("owner-signoff")[1]
DECISION = records_of("decisions")[0]
AUDIT = records_of("security-audit")
VERIFICATION = records_of("verification")
HANDED = records_of("dept-handoff")[0]
CONTRACT = records_of("api-contracts")[0]
GATE = records_of("qa-gate-results")[0]


def finding(**changes: Any) -> str:
    return lines({key: value for key, value in (FINDING | changes).items() if value != "absent"})


def plan(header: dict[str, Any] | None = None, *tasks: dict[str, Any]) -> str:
    return lines(HEADER | (header or {}), *(tasks or (FIRST, SECOND)))


def research(**changes: Any) -> str:
    return lines(RESEARCH | changes)


def summary(**changes: Any) -> str:
    return lines(SUMMARY | changes)


MISTAKES: dict[str, tuple[str, str | bytes]] = {
    # The twelve of the first user.
    "a word that is not listed": ("critique.jsonl", finding(sev="high")),
    "three missing keys": ("critique.jsonl", finding(q="absent", sev="absent", st="absent")),
    "a plural": ("critiques.jsonl", GOOD),
    "a plural with a word that is not listed": ("critiques.jsonl", finding(sev="high")),
    "another end, and a missing key": ("critique.json", finding(q="absent")),
    "a torn line": ("critique.jsonl", GOOD + '{"id":"C2","cat":"ga'),
    "pretty JSON": ("critique.jsonl", json.dumps(FINDING, indent=2) + "\n"),
    "a fence": ("critique.jsonl", f"```json\n{GOOD}```\n"),
    "CRLF": ("critique.jsonl", GOOD.replace("\n", "\r\n")),
    "a byte order mark": ("critique.jsonl", "\ufeff" + GOOD),
    "a number as text": ("01-01.summary.jsonl", summary(tc="1")),
    "the number of another plan": ("01-01.plan.jsonl", plan({"n": "02"})),
    "a plan that is not there": ("01-01.plan.jsonl", plan({"d": ["01-09"]})),
    "the folder above": ("../critique.jsonl", GOOD),
    "a line twice": ("critique.jsonl", GOOD + GOOD),
    # Forms of text.
    "an array": ("critique.jsonl", json.dumps([FINDING]) + "\n"),
    "a trailing comma": ("critique.jsonl", GOOD.replace("}", ",}")),
    "single quotes": ("critique.jsonl", GOOD.replace('"', "'")),
    "no last newline": ("critique.jsonl", GOOD.strip()),
    "nothing": ("critique.jsonl", ""),
    "prose before it": ("critique.jsonl", f"Here is the critique:\n{GOOD}"),
    "prose around it": ("critique.jsonl", f"Here is the critique:\n{GOOD}Done.\n"),
    "typographic quotes": ("critique.jsonl", GOOD.replace('"', "\u201c")),
    "a comment": ("critique.jsonl", f"// findings\n{GOOD}"),
    "commas between the lines": ("critique.jsonl", f"{GOOD.strip()},\n{finding(id='C2')}"),
    "Python's repr": ("critique.jsonl", f"{FINDING!r}\n"),
    "two in a line": ("critique.jsonl", GOOD.strip() + GOOD),
    "NaN": ("critique.jsonl", GOOD.replace('"Ask"', "NaN")),
    "a key twice": ("critique.jsonl", '{"id":"C2",' + GOOD[1:]),
    "Markdown": ("critique.jsonl", "# Critique\n\n- Why does it expire?\n- Who signs?\n"),
    "Markdown that is torn": ("critique.jsonl", "# Critique\n\n- Why does it expire?"),
    "a lone string": ("critique.jsonl", '"hello"\n'),
    "null": ("critique.jsonl", "null\n"),
    "UTF-16": ("critique.jsonl", GOOD.encode("utf-16")),
    "UTF-16, big end first": ("critique.jsonl", b"\xfe\xff" + GOOD.encode("utf-16-be")),
    "NUL": ("critique.jsonl", GOOD.replace("Ask", "A\0k")),
    "Latin-1": ("critique.jsonl", GOOD.replace("Ask", "Gr\u00fc\u00dfe").encode("latin-1")),
    "a blank line": ("critique.jsonl", GOOD + "\n" + finding(id="C2")),
    "Python's words": ("test-plan.jsonl", lines(TEST_PLAN).replace("true", "True")),
    # Values.
    "a capital": ("critique.jsonl", finding(sev="Major")),
    "a word of another list": ("critique.jsonl", finding(cat="security")),
    "true for a number": ("critique.jsonl", finding(rd=True)),
    "a share for percent": ("critique.jsonl", finding(cf=0.9)),
    "a percent sign": ("critique.jsonl", finding(cf="90%")),
    "null in a text": ("critique.jsonl", finding(sug=None)),
    "a list for a text": ("critique.jsonl", finding(q=["a"])),
    "a text for a list": ("01-01.plan.jsonl", plan({"fm": "src/a.py"})),
    "a text for true": ("test-plan.jsonl", lines(TEST_PLAN | {"red": "true"})),
    "long names": (
        "critique.jsonl",
        lines({
            "id": "C1", "category": "gap", "severity": "major", "question": "Why?", "context": "x",
            "suggestion": "y", "status": "open",
        }),
    ),
    "a key of its own": ("critique.jsonl", finding(confidence=3)),
    "another form of id": ("critique.jsonl", finding(id="1")),
    "an empty text": ("critique.jsonl", finding(q="")),
    "an absolute path": ("01-01.plan.jsonl", plan({"fm": ["/etc/x"]})),
    "a path that leaves": ("01-01.plan.jsonl", plan({"fm": ["../x"]})),
    "a wave as text": ("01-01.plan.jsonl", plan({"w": "1"})),
    "no aim": ("01-01.plan.jsonl", plan({"obj": 3})),
    "must-haves as a list": ("01-01.plan.jsonl", plan({"mh": ["Tokens are signed"]})),
    "must-haves of one kind": ("01-01.plan.jsonl", plan({"mh": {"tr": ["Tokens are signed"]}})),
    "a day in words": ("01-01.summary.jsonl", summary(dt="yesterday")),
    "half a task": ("01-01.summary.jsonl", summary(tc=1.5)),
    "fewer than none": ("01-01.summary.jsonl", summary(tc=-1)),
    "a synonym": ("01-01.summary.jsonl", summary(s="done")),
    "deviations as objects": ("01-01.summary.jsonl", summary(dv=[{"t": "x", "d": "y"}])),
    "tests in a word of its own": ("01-01.summary.jsonl", summary(tst="all passed")),
    # What is referred to.
    "a commit of elsewhere": ("01-01.summary.jsonl", summary(ch=["4f1c2aa"])),
    "a header alone": ("01-01.plan.jsonl", lines(HEADER)),
    "a task that waits for itself": ("01-01.plan.jsonl", plan(None, FIRST | {"td": ["T1"]})),
    "two that wait for each other": (
        "01-01.plan.jsonl",
        plan(None, FIRST | {"td": ["T2"]}, SECOND | {"td": ["T1"]}),
    ),
    "a task that is not there": ("01-01.plan.jsonl", plan(None, FIRST | {"td": ["T9"]})),
    "a task's long name": ("01-01.plan.jsonl", plan(None, FIRST | {"id": "task-1"})),
    "a task twice": ("01-01.plan.jsonl", plan(None, FIRST, FIRST)),
    # Names.
    "a capital in the name": ("Critique.jsonl", GOOD),
    "a second ending": ("critique.jsonl.txt", GOOD),
    "another ending": ("critique.json", GOOD),
    "a folder too many": ("notes/critique.jsonl", GOOD),
    "the plan's kind first": ("plan-01.jsonl", plan()),
    # TOON.
    "Markdown for TOON": ("architecture.toon", "# Architecture\n\nWe use REST.\n"),
    "a title alone": ("architecture.toon", "title: x\n"),
    "empty sections": ("architecture.toon", "tech_decisions[0]:\ncomponents[0]:\n"),
    "JSON for TOON": ("architecture.toon", '{"title": "x"}\n'),
    # What agents wrote in the history of a real team.
    "no text where one may be": ("01-01.plan.jsonl", plan(None, FIRST | {"spec": "", "ts": ""})),
    "artefacts in words": ("01-01.plan.jsonl", plan({"mh": {"tr": [], "ar": ["a file"], "kl": []}})),
    "an artefact without its path": ("01-01.plan.jsonl", plan({"mh": {"tr": [], "ar": [{"pv": "x"}], "kl": []}})),
    "a plan by its last number": ("01-02.plan.jsonl", plan({"n": "02", "d": ["01"]})),
    "a compound number": ("01-01.plan.jsonl", plan({"n": "01-01"})),
    "a compound phase": ("01-01.plan.jsonl", plan({"p": "01-01"})),
    "a phase without its zero": ("01-01.plan.jsonl", plan({"p": "1"})),
    "numbers for ids": ("01-01.plan.jsonl", plan({"p": 1, "n": 1})),
    "old names": ("01-01.plan.jsonl", lines({
        "phase": "01", "plan": "01", "title": "Tokens", "wave": 1, "depends_on": [],
        "must_haves": {"tr": [], "ar": [], "kl": []}, "obj": "x"}, FIRST)),
    "old names in a summary": ("01-01.summary.jsonl", lines({
        "phase": "01", "plan": "01", "title": "Tokens", "status": "partial", "date": "2026-02-19",
        "tasks_completed": 1, "tasks_total": 2, "commits": [], "files": [], "deviations": [],
        "built": ["x"], "tst": "no_tests"})),
    "no objective": ("01-01.plan.jsonl", lines({k: v for k, v in HEADER.items() if k != "obj"}, FIRST)),
    "no type of task": ("01-01.plan.jsonl", plan(None, {k: v for k, v in FIRST.items() if k != "tp"})),
    "tasks in the header": ("01-01.plan.jsonl", lines(HEADER | {"tasks": [FIRST, SECOND]})),
    "deviations of another form": ("01-01.summary.jsonl", summary(dv=[{"f": "x", "d": "y"}])),
    "one deviation": ("01-01.summary.jsonl", summary(dv="none")),
    # Forms of text.
    "YAML": ("critique.jsonl", "- id: C1\n  cat: gap\n  sev: major\n  q: Why?\n"),
    "YAML without a list": ("critique.jsonl", "id: C1\ncat: gap\nsev: major\nq: Why?\n"),
    "front matter": ("critique.jsonl", f"---\nrole: critic\n---\n{GOOD}"),
    "TOON for JSONL": ("critique.jsonl", "critique[1]{id,cat,sev,q}:\n  C1,gap,major,Why?\n"),
    "pretty JSON of each line": ("01-01.plan.jsonl", "".join(f"{json.dumps(each, indent=2)}\n" for each in (HEADER, FIRST, SECOND))),
    "an array over several lines": ("critique.jsonl", json.dumps([FINDING, FINDING | {"id": "C2"}], indent=2) + "\n"),
    "a wrapper in a fence": ("critique.jsonl", f'```json\n{json.dumps({"findings": [FINDING]}, indent=2)}\n```\n'),
    "CRLF and no last newline": ("critique.jsonl", GOOD.strip() + "\r\n" + finding(id="C2").strip()),
    "a mark and a trailing comma": ("critique.jsonl", "\ufeff" + GOOD.replace("}", ",}")),
    "quotes that curl around texts alone": ("critique.jsonl", GOOD.replace('"Why?"', "\u201cWhy?\u201d")),
    "a line without its brace": ("critique.jsonl", GOOD + finding(id="C2").replace("}", "")),
    "semicolons for commas": ("critique.jsonl", GOOD.replace(", ", "; ")),
    "a plan without its header": ("01-01.plan.jsonl", lines(FIRST, SECOND)),
    "a header at the end": ("01-01.plan.jsonl", lines(FIRST, SECOND, HEADER)),
    "a plan in TOON": ("01-01.plan.jsonl", "p: 01\nn: 01\ntasks[1]{id,a}:\n  T1,Load the keys\n"),
    "a task's path of Windows": ("01-01.plan.jsonl", plan(None, FIRST | {"f": [r"src\auth\keys.ts"]})),
    "a path to a drive": ("01-01.plan.jsonl", plan(None, FIRST | {"f": [r"C:\src\keys.ts"]})),
    "another plan's number and phase": ("01-01.plan.jsonl", plan({"p": "02", "n": "03"})),
    "CSV": ("critique.jsonl", "id,cat,sev,q\nC1,gap,major,Why?\n"),
    "XML": ("critique.jsonl", "<finding id='C1'><q>Why?</q></finding>\n"),
    "keys without quotes": ("critique.jsonl", "{" + ", ".join(f"{key}: {value!r}" for key, value in FINDING.items()) + "}\n"),
    "what a reader prints": ("critique.jsonl", f"     1\t{GOOD}     2\t{finding(id='C2')}"),
    "what a reader prints, with arrows": ("critique.jsonl", f"     1→{GOOD}"),
    "a list of Markdown": ("critique.jsonl", f"- {GOOD}- {finding(id='C2')}"),
    "a diff": ("critique.jsonl", f"+{GOOD}+{finding(id='C2')}"),
    "backticks": ("critique.jsonl", f"`{GOOD.strip()}`\n"),
    "what is left out": ("critique.jsonl", f"{GOOD}...\n"),
    "what is left out, in words": ("critique.jsonl", f"{GOOD}// ... rest unchanged\n"),
    "marks of a conflict": ("critique.jsonl", f"<<<<<<< HEAD\n{GOOD}=======\n{finding(id='C2')}>>>>>>> other\n"),
    "a wrapper": ("critique.jsonl", json.dumps({"findings": [FINDING]}) + "\n"),
    "a wrapper of the kind": ("critique.jsonl", json.dumps({"critique": [FINDING, FINDING | {"id": "C2"}]}, indent=2) + "\n"),
    "JSON in a text": ("critique.jsonl", json.dumps(GOOD.strip()) + "\n"),
    "spaces that do not break": ("critique.jsonl", GOOD.replace(": ", ":\u00a0")),
    "colours": ("critique.jsonl", f"\x1b[32m{GOOD.strip()}\x1b[0m\n"),
    "a line break in a text": ("critique.jsonl", GOOD.replace("Ask", "Ask\nagain")),
    "a tab in a text": ("critique.jsonl", GOOD.replace("Ask", "Ask\tagain")),
    "HTML": ("critique.jsonl", GOOD.replace('"', "&quot;")),
    "infinity": ("critique.jsonl", GOOD.replace('"Ask"', "Infinity")),
    "a comment behind": ("critique.jsonl", GOOD.replace("}", "} # first")),
    "half a fence": ("critique.jsonl", f"{GOOD}```\n"),
    "a path that cannot be": ("critique.jsonl", GOOD.replace("Ask", r"C:\dir")),
    # Values.
    "an id twice": ("critique.jsonl", GOOD + finding(q="How?")),
    "an id of three": ("critique.jsonl", GOOD + finding(q="How?") + finding(q="Who?")),
    "a dotted day": ("01-01.summary.jsonl", summary(dt="2026.11.28")),
    "a German day": ("01-01.summary.jsonl", summary(dt="28.11.2026")),
    "an American day": ("research.jsonl", research(dt="11/28/2026")),
    "a moment": ("research.jsonl", research(dt="2026-11-28T10:00:00Z")),
    "a moment in seconds": ("research.jsonl", research(dt=1795000000)),
    "a day without zeros": ("research.jsonl", research(dt="2026-2-9")),
    "a month alone": ("research.jsonl", research(dt="2026-02")),
    "more than all": ("critique.jsonl", finding(cf=120)),
    "a number in words": ("01-01.summary.jsonl", summary(tc="one")),
    "yes for true": ("test-plan.jsonl", lines(TEST_PLAN | {"red": "yes"})),
    "one for true": ("test-plan.jsonl", lines(TEST_PLAN | {"red": 1})),
    "HEAD for a commit": ("01-01.summary.jsonl", summary(ch=["HEAD"])),
    "a commit with its subject": ("01-01.summary.jsonl", summary(ch=["4f1c2aa feat: x"])),
    "a path with a line": ("01-01.plan.jsonl", plan({"fm": ["src/a.py:12"]})),
    "a path of Windows": ("01-01.plan.jsonl", plan({"fm": [r"src\a.py"]})),
    "a path with a dot": ("01-01.plan.jsonl", plan({"fm": ["./src/a.py"]})),
    "a path from home": ("01-01.plan.jsonl", plan({"fm": ["~/src/a.py"]})),
    "null for a list": ("01-01.summary.jsonl", summary(fm=None)),
    "null for a required text": ("critique.jsonl", finding(q=None)),
    "spaces for a required text": ("critique.jsonl", finding(q="  ")),
    "TBD": ("critique.jsonl", finding(sev="TBD")),
    "n/a": ("critique.jsonl", finding(cat="n/a")),
    "a list with one word": ("critique.jsonl", finding(sev=["major"])),
    "a task's number": ("01-01.plan.jsonl", plan(None, FIRST | {"id": 1})),
    "a dependency that is no list": ("01-01.plan.jsonl", plan(None, FIRST, SECOND | {"td": "T1"})),
    "a task before its header": ("01-01.plan.jsonl", lines(FIRST, HEADER, SECOND)),
    "a result in another case": ("qa-code.jsonl", lines(*[QA | {"r": "pass"}])),
    "a result in words": ("qa-code.jsonl", lines(*[QA | {"r": "Passed"}])),
    "numbers for the tasks of a plan": ("01-01.plan.jsonl", plan(None, FIRST | {"id": 1}, SECOND | {"id": 2, "td": [1]})),
    "tasks in one text": ("01-01.plan.jsonl", plan(None, FIRST, SECOND, SECOND | {"id": "T3", "td": "T1, T2"})),
    "departments in one text": ("owner-signoff.jsonl", lines(SIGNOFF | {"departments_approved": "backend, frontend"})),
    "a moment in milliseconds": ("decisions.jsonl", lines(DECISION | {"ts": 1771405920000})),
    "keys of JavaScript": ("01-01.summary.jsonl", lines({
        "p": "01", "n": "01", "t": "x", "s": "partial", "dt": "2026-02-19", "tasksCompleted": 1,
        "tasksTotal": 2, "commitHashes": [], "filesModified": [], "Deviations": [], "built": ["x"],
        "tst": "no_tests"})),
    "keys in capitals, with hyphens": ("test-plan.jsonl", lines({
        "ID": "T1", "Plan": "01-01", "Test-Files": ["tests/a.py"], "TC": 3, "RED": True, "Desc": "x"})),
    "a finding that informs": ("security-audit.jsonl", lines(AUDIT[0], AUDIT[1] | {"sev": "info"})),
    "a check in another word": ("verification.jsonl", lines(VERIFICATION[0] | {"r": "verified"}, *VERIFICATION[1:])),
    "checks above their verdict": ("verification.jsonl", lines(*VERIFICATION[1:], VERIFICATION[0])),
    "checks without a verdict": ("verification.jsonl", lines(*VERIFICATION[1:])),
    "UTF-16 without its mark": ("critique.jsonl", GOOD.encode("utf-16-le")),
    "UTF-16 without its mark, big end first": ("critique.jsonl", GOOD.encode("utf-16-be")),
    # Names.
    "plan.jsonl": ("plan.jsonl", plan()),
    "summary.jsonl": ("summary.jsonl", summary()),
    "a plan with one digit": ("01-1.plan.jsonl", plan()),
    "a plan without a phase": ("01.plan.jsonl", plan()),
    "a plan with hyphens": ("01-01-plan.jsonl", plan()),
    "an underscore": ("code_review.jsonl", lines(REVIEW)),
    "a department in full": ("backend-critique.jsonl", GOOD),
    "a frontend in full": ("frontend-critique.jsonl", GOOD),
    "an ending of YAML": ("critique.yaml", "- id: C1\n"),
    "an ending of Markdown": ("critique.md", "# Critique\n"),
    "a copy": ("critique (1).jsonl", GOOD),
    "a temporary name": ("critique.jsonl.new", GOOD),
    "a plan with its title": ("01-01-tokens.plan.jsonl", plan()),
    "a plan with its department in the middle": ("01-be-01.plan.jsonl", plan()),
    "a summary of a task": ("01-01-T1.summary.jsonl", summary()),
    "a folder for the department": ("frontend/critique.jsonl", GOOD),
    "another phase's plan": ("02-01.plan.jsonl", plan({"p": "02"})),
    # TOON.
    "TOON that is YAML": ("architecture.toon", "tech_decisions:\n  - id: 1\n"),
    "TOON in a fence": ("architecture.toon", f"```toon\n{ARCHITECTURE}```\n"),
    "TOON with tabs": ("architecture.toon", ARCHITECTURE.replace("  ", "\t")),
    "TOON that counts wrong": ("architecture.toon", ARCHITECTURE.replace("[2]", "[3]", 1)),
    # What only shows once the form is right.
    "findings in the place of their number": ("security-audit.jsonl", lines(AUDIT[0] | {"findings": AUDIT[1:]})),
    "commits in one text": ("01-01.summary.jsonl", summary(ch="4f1c2aa, 9be07d1")),
    "tokens by category": ("design-tokens.jsonl", json.dumps({"color": {"error": "#B3261E"}}, indent=2) + "\n"),
    "another folder and a word that is not listed": ("../critique.jsonl", finding(sev="severe")),
    "another folder and a document that is torn": ("../analysis.json", '{"complexity": "high",}\n'),
    # Members.
    "names in the place of objects": ("dept-handoff.jsonl", lines(HANDED | {"contracts": ["LoginForm"]})),
    "an endpoint in one text": ("api-contracts.jsonl", lines(CONTRACT | {"endpoints": ["POST /login"]})),
    "a direction in prefixes": ("api-contracts.jsonl", lines(CONTRACT | {"direction": "be_to_fe"})),
    "a level in another spelling": (".qa-gate-results.jsonl", lines(GATE | {"gl": "post_task"})),
    # A message in the place of the artifact.
    # A wrong name, and what is wrong under it.
    "another name and a wrong value": ("plan-01.jsonl", plan({"w": "1"})),
    "another name and an old key": ("plan-01.jsonl", lines({**{k: v for k, v in HEADER.items() if k != "obj"}, "goal": "x"}, FIRST)),
    "another ending and a wrong value": ("01-01.plan.json", plan({"w": "1"})),
    "a capital and a wrong word": ("Critique.jsonl", finding(sev="Major")),
    "a department too many and a wrong word": ("backend-critique.jsonl", finding(sev="Major")),
    "a folder of the department and a wrong word": ("backend/critique.jsonl", finding(sev="Major")),
    "a second ending and a fence": ("critique.jsonl.txt", f"```json\n{finding(sev='Major')}```\n"),
    "a plan beside its phase": ("../01-01.plan.jsonl", plan({"w": "1"})),
    "a plan in the root": ("../../01-01.plan.jsonl", plan({"w": "1"})),
    "a phase without its zero, and a wrong value": ("../1-auth/01-01.plan.jsonl", plan({"w": "1"})),
    "the number of another phase": ("02-01.plan.jsonl", plan()),
    "the number of another phase, and of another plan": ("02-01.plan.jsonl", plan({"n": "02"})),
    "YAML's ending": ("critique.yaml", "- id: C1\n  cat: gap\n  sev: major\n  q: Why?\n"),
    "YAML's ending on JSON": ("critique.yml", finding(sev="Major")),
    # Records in other forms.
    "an array in an array": ("critique.jsonl", json.dumps([[FINDING], [FINDING | {"id": "C2"}]]) + "\n"),
    "an array a line": ("critique.jsonl", f"[{GOOD.strip()}]\n[{finding(id='C2').strip()}]\n"),
    "each under its id": ("critique.jsonl", json.dumps({"C1": FINDING, "C2": FINDING | {"id": "C2"}}) + "\n"),
    "each under its id alone": ("critique.jsonl", json.dumps({"C1": {k: v for k, v in FINDING.items() if k != "id"}, "C2": FINDING | {"id": "C2"}}) + "\n"),
    "an array in a text": ("critique.jsonl", json.dumps(json.dumps([FINDING])) + "\n"),
    "a number for the id of a finding": ("critique.jsonl", finding(id=1)),
    "numbers for the ids of tasks": ("01-01.plan.jsonl", plan(None, FIRST | {"id": 1}, SECOND | {"id": 2, "td": [1]})),
    "percent of a number": ("critique.jsonl", finding(cf="90 %")),
    "the message of a review": ("code-review.jsonl", lines({
        "type": "code_review_result", "plan_id": "01-01", "result": "approve", "cycle": 1,
        "findings_count": 0, "critical": 0, "artifact": "x", "committed": True})),
    "the message of tests": ("test-plan.jsonl", lines({"type": "test_plan_result", "plan_id": "01-01", "tasks_tested": 3})),
    "the message of an escalation": ("escalation.jsonl", lines({
        "type": "escalation", "from": "dev", "to": "senior", "issue": "x", "evidence": ["y"],
        "recommendation": "z", "severity": "blocking"})),
    # Whole files.
    "a state of one's own": (".execution-state.json", "not json\n"),
    "a handoff for a decision": ("decisions.jsonl", lines({"decision": "x"})),
}  # fmt: skip


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a phase and a commit."""
    root = tmp_path_factory.mktemp("ready")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        for words in (
            ("init", "-q", "-b", "main"),
            ("config", "user.email", "dev@example.com"),
            ("config", "user.name", "Dev"),
            ("commit", "-q", "--allow-empty", "-m", "chore(repo): begin"),
        ):
            subprocess.run(["git", *words], cwd=root, check=True)
        said_by("init", "-q", "--no-hooks", "-C", str(root))
    (root / FOLDER).mkdir(parents=True)
    return root


@pytest.fixture
def root(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "repo"
    shutil.copytree(ready, root)
    monkeypatch.chdir(root)
    yield root


def written(root: Path, name: str, content: str | bytes) -> Path:
    path = root / FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


def told_by_validate(root: Path, path: Path) -> str:
    return said_by("validate", "-C", str(root))


def told_by_hook(root: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the host hands its agent after a write; nothing where the file is accepted."""
    import io

    payload = {
        "hook_event_name": "PostToolUse", "tool_name": "Write", "cwd": str(root), "session_id": "s",
        "tool_input": {"file_path": os.path.normpath(path)}, "tool_response": {"success": True},
    }  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode())))
    out = said_by("hook", "post-tool-use", "--host", "claude")
    told = json.loads(out) if out.strip() else {}
    return str(told.get("reason", ""))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_mended_in_one_turn_from_what_validate_prints(
    root: Path, mistake: str
) -> None:
    path = written(root, *MISTAKES[mistake])
    message = told_by_validate(root, path)
    Obedient(root, PHASE).obey(message)
    assert run(["validate"]) == 0, (message, told_by_validate(root, path))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_mended_in_one_turn_from_what_the_hook_tells_the_agent(
    root: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(root, *MISTAKES[mistake])
    is_refused = run(["validate"]) != 0
    message = told_by_hook(root, path, monkeypatch)
    assert bool(message) == is_refused
    Obedient(root, PHASE).obey(message)
    assert run(["validate"]) == 0, (message, told_by_validate(root, path))


def test_most_of_these_mistakes_are_refused(root: Path) -> None:
    """Else the two tests above would show nothing."""
    refused = 0
    for name, content in MISTAKES.values():
        path = written(root, name, content)
        refused += run(["validate", str(path)]) != 0
        path.unlink()
    assert refused >= 90, refused


def test_an_id_that_is_used_twice_is_told_a_free_one(root: Path) -> None:
    path = written(
        root,
        "critique.jsonl",
        GOOD + finding(q="How?") + finding(id="C7", q="Who?") + finding(q="When?"),
    )
    Obedient(root, PHASE).obey(told_by_validate(root, path).replace("warning: ", ""))
    ids = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert ids == ["C1", "C8", "C7", "C9"]


def test_a_text_that_must_be_there_is_asked_for_and_not_made_up(root: Path) -> None:
    path = written(root, "critique.jsonl", finding(q=None))
    assert run(["fix", str(path), "--write"]) == 1
    assert json.loads(path.read_text())["q"] is None and run(["validate"]) == 1


KINDS = [
    artifact
    for artifact in ARTIFACTS
    if artifact.file.endswith((".json", ".jsonl")) and find_kind(f"artifact/{artifact.kind}")
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda artifact: artifact.kind)
def test_each_key_of_each_kind_that_is_absent_or_wrong_is_filled_in_from_the_message(
    kind: Artifact, root: Path
) -> None:
    """The message names the key, what is expected, and a value that is accepted in its place."""
    is_spread = kind.file.endswith(".json")
    text = example_of(kind.kind)
    records = [json.loads(each) for each in ([text] if is_spread else text.splitlines())]
    path = root / f"some{'.json' if is_spread else '.jsonl'}"
    asked = ("validate", path.name, "--type", f"artifact/{kind.kind}", "--json")
    for number, record in enumerate(records[:2]):
        for key in record:
            for value in (ABSENT, {"no": "value"}, 7.5):
                wrong = {**record, key: value}
                wrong = {name: each for name, each in wrong.items() if each is not ABSENT}
                changed = [*records[:number], wrong, *records[number + 1 :]]
                path.write_text(lines(*changed))
                found = [each for each in told(asked) if each["level"] == "error"]
                Obedient(root, PHASE).obey("\n".join(map(said, found)))
                left = {(each["reason"], each["at"]) for each in told(asked)}
                again = {(each["reason"], each["at"]) for each in found} & left
                again = {(reason, at) for reason, at in again if reason not in OF_TWO_VALUES}
                assert not again, (key, value, [said(each) for each in found], path.read_text())


@pytest.mark.parametrize("kind", KINDS, ids=lambda artifact: artifact.kind)
def test_a_word_that_no_key_takes_is_a_finding_and_never_an_exception(
    kind: Artifact, root: Path
) -> None:
    is_spread = kind.file.endswith(".json")
    text = example_of(kind.kind)
    records = [json.loads(each) for each in ([text] if is_spread else text.splitlines())]
    name = kind.file.replace("{dept}", "").replace("{plan}", "01-01")
    for number, record in enumerate(records[:2]):
        for key in record:
            wrong = {**record, key: "no such word"}
            path = written(root, name, lines(*records[:number], wrong, *records[number + 1 :]))
            assert run(["validate", str(path)]) in (0, 1), (key, record[key])


@pytest.mark.parametrize("kind", KINDS, ids=lambda artifact: artifact.kind)
def test_the_example_of_a_kind_has_no_key_of_which_it_is_said_that_the_protocol_has_none(
    kind: Artifact, root: Path
) -> None:
    path = written(root, f"some-{kind.file.rpartition('.')[2]}", example_of(kind.kind))
    told = said_by("validate", str(path), "--type", f"artifact/{kind.kind}")
    assert "unknown_key" not in told


def test_a_message_in_the_place_of_a_line_is_told_once_and_not_key_by_key(root: Path) -> None:
    path = written(root, *MISTAKES["the message of a review"])
    said = told_by_validate(root, path)
    assert "this is the `code_review_result` message" in said and "missing_key" not in said
    review = {**REVIEW, "type": "code_review_result"}
    assert "this is the" not in told_by_validate(root, written(root, path.name, lines(review)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("config.json", "config"), ("phases/01-auth/.dept-status-backend.json", "state/dept-status")],
)
def test_a_file_of_any_kind_that_is_no_json_names_the_command_that_prints_a_valid_one(
    root: Path, name: str, kind: str
) -> None:
    path = written(root, f"../../{name}", "// mine\n{}\n")
    said = said_by("validate", str(path))
    assert f"'yolo-fs schema example {kind}' prints a valid one." in said
    Obedient(root, PHASE).obey(said)
    assert run(["validate", str(path)]) == 0


def test_a_gate_level_that_is_none_says_nothing_against_the_other_keys(root: Path) -> None:
    path = written(root, ".qa-gate-results.jsonl", lines(GATE | {"gl": "task"}))
    said = told_by_validate(root, path)
    assert "/gl: unknown_value" in said and "unknown_key" not in said


ABSENT = object()
OF_TWO_VALUES = ("state_conflict", "totals_disagree")
"""Two values that exclude each other: which of them is wrong only the author knows."""


def told(asked: tuple[str, ...]) -> list[dict[str, Any]]:
    return list(json.loads(said_by(*asked))["findings"])


def said(found: dict[str, Any]) -> str:
    """Return a finding as people read it."""
    finding = Finding(**{**found, "reason": Reason.of(found["reason"]), "level": Level.ERROR})
    return str(finding)


def test_a_key_that_lacks_is_asked_for_by_what_it_means_in_a_line_of_its_kind(repo: Repo) -> None:
    repo.file(".yolo-planning/phases/01-auth/research.jsonl", '{"q":"Is there a rate limit?"}\n')
    done = repo.yolo_fs("fix", ".yolo-planning/phases/01-auth/research.jsonl", ok=(1,))
    asked = (done.stdout + done.stderr).decode()
    assert "Add `src`: source of the answer" in asked and "no source yet" not in asked


def test_a_terminal_without_utf_8_gets_our_signs_in_ascii_and_others_escaped(repo: Repo) -> None:
    repo.yolo_fs("phase", "new", "auth")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    listed = forked.start(["gate", "list"], repo.root, repo.env | plain).out
    assert b"  -> yolo-fs " in listed and b"\\u2192" not in listed
    unknown = forked.start(["explain", "caf\u00e9"], repo.root, repo.env | plain)
    assert b"caf\\xe9" in unknown.err or b"udcc3" in unknown.err


def test_a_moment_in_milliseconds_is_written_as_the_moment_that_it_is(root: Path) -> None:
    path = written(root, "decisions.jsonl", lines(DECISION | {"ts": 1771405920000}))
    assert run(["fix", str(path), "--write"]) == 0
    [record] = map(json.loads, path.read_text().splitlines())
    assert (record["ts"], record["ts_note"]) == ("2026-02-18T09:12:00Z", 1771405920000)


def test_checks_that_stand_above_their_verdict_are_not_read_as_one(root: Path) -> None:
    path = written(root, "verification.jsonl", lines(*VERIFICATION[1:], VERIFICATION[0]))
    assert "Move the header to the first line." in told_by_validate(root, path)
    assert run(["fix", str(path), "--write"]) == 0
    assert path.read_text() == lines(*VERIFICATION)


def test_what_stands_where_a_line_stops_being_json_is_shown(root: Path) -> None:
    path = written(root, "critique.jsonl", GOOD.replace('"Ask"', "undefined"))
    assert "at column 80: 'undefined, " in told_by_validate(root, path)
    token = "ghp_" + "a1B2c3D4" * 5
    path = written(root, "critique.jsonl", GOOD.replace('"Ask"', f"{token} undefined"))
    assert token[:8] not in told_by_validate(root, path)


def test_a_section_in_another_spelling_is_not_told_that_there_is_none(root: Path) -> None:
    text = ARCHITECTURE.replace("tech_decisions", "techDecisions")
    said = told_by_validate(root, written(root, "architecture.toon", text))
    assert "no 'tech_decisions', but 'techDecisions'" in said
    assert "tech_decisions[0]" not in said


def test_of_records_that_stand_under_their_ids_no_value_is_lost(root: Path) -> None:
    first, second = FINDING, FINDING | {"id": "C2", "q": "How?"}
    path = written(root, "critique.jsonl", json.dumps({"C1": first, "C2": second}) + "\n")
    assert run(["fix", str(path), "--write"]) == 0
    assert [json.loads(line) for line in path.read_text().splitlines()] == [first, second]


def test_an_artifact_that_is_not_there_is_told_with_the_command_that_shows_one(root: Path) -> None:
    """A closed gate names `validate` for what it lacks."""
    said = said_by("validate", f"{FOLDER}/design-handoff.jsonl")
    assert "'yolo-fs schema example design-handoff.jsonl' prints a valid one." in said
    assert "schema example" not in said_by("validate", "notes.txt")


def test_of_two_groups_of_keys_neither_loses_a_value_to_the_other(root: Path) -> None:
    keys = {"cat": "gap", "sev": "major"}
    line = {**FINDING, "a": keys, "b": keys | {"sev": "minor"}}
    path = written(root, "critique.jsonl", lines({k: v for k, v in line.items() if k not in keys}))
    run(["fix", str(path), "--write"])
    [record] = map(json.loads, path.read_text().splitlines())
    assert "minor" in str(record) and "major" in str(record)


def test_a_test_plan_is_told_which_tasks_there_are(root: Path) -> None:
    written(root, "01-01.plan.jsonl", plan())
    path = written(root, "test-plan.jsonl", lines(TEST_PLAN | {"id": "T9", "plan": "01-01"}))
    assert "/id: unknown_reference: plan 01-01 has no task T9; expected T1, T2" in told_by_validate(
        root, path
    )


def test_a_file_with_a_wrong_name_is_repaired_first_and_renamed_then(root: Path) -> None:
    path = written(root, "plan-01.jsonl", plan({"w": "1"}))
    said = told_by_validate(root, path)
    fixed, renamed = said.index("fixable: yolo-fs fix"), said.index("Then rename ")
    assert fixed < renamed and said.rstrip().endswith(f"{PHASE}/01-01.plan.jsonl")


def test_what_fix_asks_keeps_what_validate_advises(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(root, "01-01.plan.jsonl", plan({"n": "02"}))
    assert run(["fix", str(path)]) == 1
    assert 'Write "p":"01","n":"01" here' in capsys.readouterr().err


HANDOFF = example_of("handoff")
FIELDS = dict(line.split(": ", 1) for line in HANDOFF.split("---\n")[1].split("\n  ")[1:])
FIELDS = {key: text.rstrip() for key, text in FIELDS.items()}
TEXT = HANDOFF.split("---\n", 2)[2]


def packet(before: str = "", after: str = "", /) -> str:
    """Return the handoff with one passage written otherwise."""
    assert before in HANDOFF
    return HANDOFF.replace(before, after, 1)


def spelled(form: str) -> str:
    """Return the fields in another form, one a line."""
    return "".join(f"{form.format(key, text)}\n" for key, text in FIELDS.items())


PACKETS = {
    "a comment behind a value": packet("executor\n", "executor  # me\n"),
    "a comment of its own": packet("  to_role", "  # who goes on\n  to_role"),
    "a tab": packet("  from_role", "\tfrom_role"),
    "a tab behind the colon": packet("from_role: ", "from_role:\t"),
    "four blanks": packet("  to_role", "    to_role"),
    "no blank behind the colon": packet("from_role: ", "from_role:"),
    "a space that does not break": packet("from_role: ", "from_role:\u00a0"),
    "no `handoff:`": HANDOFF.replace("handoff:\n", "").replace("\n  ", "\n"),
    "a capital in `Handoff:`": packet("handoff:", "Handoff:"),
    "a list of one packet": packet("\n  from_role", "\n  - from_role").replace("\n  ", "\n    ").replace("\n    - ", "\n  - "),
    "a key in capitals": packet("from_role", "FROM_ROLE"),
    "a key with a dash": packet("from_role", "from-role"),
    "a key in one word": packet("from_role", "fromRole"),
    "a short key": packet("from_role", "from"),
    "a role in capitals": packet(": executor\n", ": Executor\n"),
    "a role with its prefix": packet(": executor\n", ": yolo-executor\n"),
    "a role with its number": packet(": executor\n", ": executor-2\n"),
    "a role that there is not": packet("to_role: architect", "to_role: lead"),
    "a trigger with dashes": packet("executor_scope_or_contract_block", "executor-scope-or-contract-block"),
    "a trigger in capitals": packet("executor_scope_or_contract_block", "EXECUTOR_SCOPE_OR_CONTRACT_BLOCK"),
    "a trigger of one's own": packet("executor_scope_or_contract_block", "scope_block"),
    "a block of text": packet(f"objective: {FIELDS['objective']}", f"objective: |\n    {FIELDS['objective']}\n    and how"),
    "a text on two lines": packet(FIELDS["objective"], f"{FIELDS['objective']}\n    and how"),
    "a list of one path": packet(f"required_reading: {FIELDS['required_reading']}", f"required_reading:\n    - {FIELDS['required_reading']}"),
    "a list in brackets": packet(FIELDS["required_reading"], f"[{FIELDS['required_reading']}]"),
    "a colon in a text": packet(FIELDS["objective"], "Decide: where the session lives"),
    "a hash in a text": packet(FIELDS["objective"], "Decide #12 first"),
    "a quote that is not closed": packet(FIELDS["objective"], '"Decide where'),
    "backticks in a text": packet(FIELDS["objective"], "`Decide` where"),
    "a name in a text": packet(FIELDS["objective"], "@architect decides"),
    "stars in a text": packet(FIELDS["objective"], "**Decide** where"),
    "no text": packet(f": {FIELDS['objective']}", ":"),
    "a field that is not there": packet(f"  objective: {FIELDS['objective']}\n", ""),
    "a placeholder": packet(FIELDS["objective"], "<one line objective>"),
    "a ref for a branch": packet(": feature/", ": refs/heads/feature/"),
    "a session in braces": packet(FIELDS["session_id"], f"{{{FIELDS['session_id']}}}"),
    "a path of Windows": packet(f"task_file: {FIELDS['task_file']}", "task_file: " + FIELDS["task_file"].replace("/", "\\")),
    "the same field twice": packet("  objective", "  to_role: architect\n  objective"),
    "a fence of YAML": f"```yaml\nhandoff:\n{spelled('  {}: {}')}```\n{TEXT}",
    "a title above it": f"# Handoff\n\n{HANDOFF}",
    "a blank line above it": f"\n{HANDOFF}",
    "no fences": f"handoff:\n{spelled('  {}: {}')}{TEXT}",
    "one fence": f"---\nhandoff:\n{spelled('  {}: {}')}{TEXT}",
    "four dashes": HANDOFF.replace("---\n", "----\n"),
    "dots at the end": f"---\nhandoff:\n{spelled('  {}: {}')}...\n{TEXT}",
    "blanks behind the fence": packet("---\n", "--- \n"),
    "the packet of a chat": f"=== AUTO HANDOFF ===\n{spelled('{}: {}')}",
    "JSON": json.dumps({"handoff": FIELDS}, indent=2) + "\n",
    "JSON with a line break in a text": json.dumps(FIELDS | {"objective": "Decide\nwhere"}) + "\n",
    "JSON of the fields alone": json.dumps(FIELDS) + "\n",
    "TOML's fences": HANDOFF.replace("---", "+++"),
    "a list of Markdown": f"# Handoff\n\n{spelled('- **{}**: {}')}{TEXT}",
    "words for keys": f"# Handoff\n\n{spelled('{}: {}').replace('from_role', 'From role').replace('blocking_rule', 'Blocking rule')}{TEXT}",
    "two mistakes": packet(": executor\n", ": Executor  # me\n").replace(FIELDS["objective"], "Decide: where"),
    "a mistake that hides another": packet(": executor\n", ": executor  # me\n").replace(f": {FIELDS['objective']}", ":"),
}  # fmt: skip


@pytest.fixture
def session(root: Path) -> str:
    """The folder of the packet's directive session, relative to the repository."""
    folder = f"apps/web/.local/directives/{FIELDS['session_id']}"
    (root / folder).mkdir(parents=True)
    meta = f"---\nmeta:\n  directive_branch: {FIELDS['directive_branch']}\n---\n"
    (root / folder / "README.md").write_text(meta)
    return folder


@pytest.mark.parametrize("door", ["validate", "hook"])
def test_a_mistake_in_a_packet_is_mended_in_one_turn(
    root: Path, session: str, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {}
    for mistake, text in PACKETS.items():
        path = written(root, f"../../../{session}/HANDOFF.md", text)
        assert run(["validate"]) == 1, mistake
        is_hook = door == "hook"
        told = told_by_hook(root, path, monkeypatch) if is_hook else told_by_validate(root, path)
        Obedient(root, PHASE).obey(told)
        if run(["validate"]):
            left[mistake] = (told, told_by_validate(root, path), path.read_text())
    assert not left


def test_the_repair_of_a_packet_keeps_every_word(root: Path) -> None:
    lost = {}
    for mistake, text in PACKETS.items():
        path = written(root, "HANDOFF.md", text)
        run(["fix", str(path), "--write"])
        after = path.read_text()
        said = text.casefold().replace("\\n", " ")  # as JSON writes a line break
        given = set(re.findall(r"[a-z0-9]+", said)) - WORDS_OF_FORM
        lost[mistake] = given - set(re.findall(r"[a-z0-9]+", after.casefold()))
        run(["fix", str(path), "--write"])
        assert path.read_text() == after, ("a second repair changes more", mistake)
    assert not {mistake: words for mistake, words in lost.items() if words}


WORDS_OF_FORM = {"auto", "handoff", "yaml", "refs", "heads", "yolo", "2", "fromrole"}


def test_a_packet_under_nearly_its_name_is_told_what_is_wrong_in_it(
    root: Path, session: str
) -> None:
    path = written(root, f"../../../{session}/handoff.md", PACKETS["a role in capitals"])
    message = told_by_validate(root, path)
    assert f"Then rename {session}/handoff.md to {session}/HANDOFF.md" in message
    Obedient(root, PHASE).obey(message)
    assert run(["validate"]) == 0 and (root / session / "HANDOFF.md").exists()


def test_a_configuration_that_an_agent_spoils_is_told_at_once_and_mended_in_one_turn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / ".yolo-planning" / "config.json"
    right = path.read_text()
    for spoilt in (f"// mine\n{right}", right.replace("false", "False"), f"\ufeff{right}"):
        path.write_text(spoilt)
        told = told_by_hook(root, path, monkeypatch)
        assert "config.json is not valid: what was in force before holds" in told
        Obedient(root, PHASE).obey(told)
        assert run(["validate", str(path)]) == 0 and json.loads(path.read_text()).items() >= (
            json.loads(right).items()
        )


def test_of_two_values_of_a_field_none_is_chosen(root: Path) -> None:
    text = packet("  objective", "  to_role: pair\n  objective")
    path = written(root, "HANDOFF.md", text)
    assert run(["fix", str(path), "--write"]) == 1 and path.read_text() == text


def test_prose_without_a_packet_is_made_none(root: Path) -> None:
    text = "# Handoff\n\nFrom: me\nTo: whoever reads this\n"
    path = written(root, "HANDOFF.md", text)
    assert run(["fix", str(path), "--write"]) == 1 and path.read_text() == text


@pytest.mark.parametrize(
    "text",
    ["# Handoff\n", '{"from_role": "pair"}\n', HANDOFF.replace("---\n\n", "\n"), "",
     HANDOFF.replace("handoff:\n", "").replace("  ", "")],
    ids=["no front matter", "JSON", "half of it", "nothing", "flat"],
)  # fmt: skip
def test_a_handoff_without_its_front_matter_is_told_where_to_see_one(root: Path, text: str) -> None:
    said = told_by_validate(root, written(root, "HANDOFF.md", text))
    assert "'yolo-fs schema example HANDOFF.md' shows the whole form." in said


@pytest.mark.parametrize(
    "text",
    [HANDOFF.replace("\n", "\r\n"), "\ufeff" + HANDOFF, f"```markdown\n{HANDOFF}```\n"],
    ids=["CRLF", "a byte order mark", "a fence"],
)
def test_the_form_of_a_handoff_s_text_is_repaired_as_any_other_s(root: Path, text: str) -> None:
    path = written(root, "HANDOFF.md", text)
    assert "fixable: yolo-fs fix" in told_by_validate(root, path)
    run(["fix", str(path), "--write"])
    assert path.read_text() == HANDOFF


def test_a_key_of_a_handoff_in_another_spelling_is_told_its_own(root: Path) -> None:
    path = written(root, "HANDOFF.md", HANDOFF.replace("from_role", "fromRole"))
    assert "'fromRole' is not in the protocol; expected the key 'from_role'" in told_by_validate(
        root, path
    )


@pytest.mark.parametrize(
    ("written_as", "expected"),
    [
        ("`src/a.py`", "is more than a path; expected src/a.py"),
        (" src/a.py", "is more than a path; expected src/a.py"),
        ("src/a.py (new)", "is more than a path; expected src/a.py"),
        ("src/a.py, src/b.py", "is more than one path; expected each path as a separate member"),
        ("app/(shop)/page.tsx", ""),
        ("docs/a, b.md", "is more than one path"),
    ],
)
def test_what_no_commit_can_have_as_its_path_is_told_with_the_path_in_it(
    root: Path, written_as: str, expected: str
) -> None:
    """Else a task waits for a file that nobody will ever change."""
    path = written(root, "01-01.plan.jsonl", plan(None, FIRST | {"f": [written_as]}, SECOND))
    said = told_by_validate(root, path)
    assert expected in said and ("warning: " in said) is bool(expected)
    assert run(["validate"]) == 0


def test_an_old_key_beside_the_present_one_is_not_told_to_become_it(root: Path) -> None:
    path = written(root, "critique.jsonl", lines(FINDING | {"finding": "Another"}))
    said = told_by_validate(root, path)
    assert "'finding' is the old name of 'q', which is there, too; expected one of the two" in said
