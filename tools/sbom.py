"""Prints the bill of materials of yolo-fs and each of its extras, as CycloneDX 1.6 JSON.

It says what `pip install` brings here, from the locked versions of this checkout: an extra may need more on another
system or Python.
"""

from __future__ import annotations

import importlib.metadata as metadata
import json
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ITSELF = "yolo-fs"
EXTRAS = sorted(set(metadata.metadata(ITSELF).get_all("Provides-Extra") or ()) - {"dev", "fuzz"})


def bill() -> dict[str, Any]:
    """Return it. A library that only extras bring is optional, and names them."""
    core, needs = _needs(), _needs(*EXTRAS)
    brought = {extra: _needs(extra).keys() - core.keys() for extra in EXTRAS}
    parts = {name: _component(metadata.distribution(name)) for name in sorted(needs)}
    itself = parts.pop(ITSELF) | {"type": "application"}
    for name, part in parts.items():
        extras = [extra for extra in EXTRAS if name in brought[extra]]
        part["scope"] = "optional" if extras else "required"
        part["properties"] = [{"name": "yolo-fs:extra", "value": extra} for extra in extras]
    references = {name: part["bom-ref"] for name, part in [(ITSELF, itself), *parts.items()]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(references[each] for each in needs[name])}
            for name, reference in references.items()
        ],
    }


def _needs(*extras: str) -> dict[str, set[str]]:
    """Return what yolo-fs with these extras brings, itself included: name → what that needs."""
    needs: dict[str, set[str]] = {}
    wanted, seen = [(ITSELF, ("", *extras))], set()
    while wanted:
        name, chosen = wanted.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        known = needs.setdefault(name, set())
        for line in metadata.distribution(name).requires or ():
            need = Requirement(line)
            if need.marker and not any(need.marker.evaluate({"extra": each}) for each in chosen):
                continue
            known.add(canonicalize_name(need.name))
            wanted.append((canonicalize_name(need.name), ("", *sorted(need.extras))))
    return needs


def _component(package: metadata.Distribution) -> dict[str, Any]:
    name, version = package.metadata["Name"], package.version
    purl = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [_licence(package.metadata)],
    }


def _licence(about: metadata.PackageMetadata) -> dict[str, Any]:
    if "License-Expression" in about:
        return {"expression": about["License-Expression"]}
    classifiers = about.get_all("Classifier") or ()
    names = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    words = about["License"] if "License" in about else "; ".join(names)
    return {"license": {"name": words.splitlines()[0]}}


if __name__ == "__main__":
    print(json.dumps(bill(), indent=2))
