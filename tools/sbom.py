"""Prints the bill of materials of what `pip install yolo-fs` installs, as CycloneDX 1.6 JSON."""

from __future__ import annotations

import importlib.metadata as metadata
import json
from typing import Any

from packaging.requirements import Requirement


def components() -> list[dict[str, Any]]:
    """Return the libraries that the core needs, directly or not: name, version, licence, package
    URL.
    """
    wanted, found = ["yolo-fs"], {}
    while wanted:
        package = metadata.distribution(wanted.pop())
        for line in package.requires or ():
            need = Requirement(line)
            if need.name not in found and (not need.marker or need.marker.evaluate({"extra": ""})):
                found[need.name] = _component(metadata.distribution(need.name))
                wanted.append(need.name)
    return sorted(found.values(), key=lambda part: str(part["name"]).lower())


def _component(package: metadata.Distribution) -> dict[str, Any]:
    about, version = package.metadata, package.version
    licence = about.get("License-Expression") or about.get("License") or "see the package"
    return {
        "type": "library",
        "name": about["Name"],
        "version": version,
        "purl": f"pkg:pypi/{about['Name'].lower()}@{version}",
        "licenses": [{"license": {"name": licence.splitlines()[0]}}],
    }


def main() -> None:
    """Print it."""
    itself = _component(metadata.distribution("yolo-fs"))
    print(
        json.dumps(
            {
                "bomFormat": "CycloneDX",
                "specVersion": "1.6",
                "version": 1,
                "metadata": {"component": itself | {"type": "application"}},
                "components": components(),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
