"""A path for every kind of artifact, in every department that has its own."""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.artifacts.table import ARTIFACTS, Home
from yolo_fs.protocol.departments import WORKING


def paths_of_kinds(phase: str) -> Iterator[tuple[str, str]]:
    """Yield kind and path, relative to the repository; `phase`: folder of the phase."""
    for artifact in ARTIFACTS:
        prefixes = [row.prefix for row in WORKING] if "{dept}" in artifact.file else [""]
        folder = ".yolo-planning" if artifact.home is Home.ROOT else phase
        for prefix in prefixes:
            name = artifact.file.replace("{dept}", prefix).replace("{plan}", "01-01")
            name = name.replace("{NN}", "01").replace("{department}", WORKING[0].name)
            yield artifact.kind, f"{folder}/{name}"
