"""The table of targets, by name."""

from __future__ import annotations

from fuzzers.arrays import NpyTarget, NpzTarget
from fuzzers.cases import Target
from fuzzers.checkpoints import CheckpointTarget
from fuzzers.commands import CommandTarget
from fuzzers.models import ModelTarget
from fuzzers.tables import ArrowTarget, ParquetTarget
from fuzzers.texts import CsvTarget, LibsvmTarget
from fuzzers.traps import TrapTarget

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        ModelTarget(),
        CheckpointTarget(),
        CsvTarget(),
        LibsvmTarget(),
        NpyTarget(),
        NpzTarget(),
        ArrowTarget(),
        ParquetTarget(),
        CommandTarget(),
    )
}

TRAP = TrapTarget()


def target_of(name: str) -> Target:
    """Return a target of the table, or the one that tries the fuzzers themselves."""
    return TRAP if name == TRAP.name else TARGETS[name]
