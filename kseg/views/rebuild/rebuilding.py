"""What `rebuild-metadata` finds before it writes: which copy is used, what the others have, what is newer than it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kseg.log.partition.log_dir import Refuse
from kseg.views.rebuild.metadata_copies import MetadataCopy, metadata_copies
from kseg.views.rebuild.newer_partitions import NewerPartition, newer_partitions
from kseg.views.rebuild.rebuilt import NewVoter, RebuiltMetadata, plan_rebuilt


class Rebuilding(NamedTuple):
    """What was found for a new controller: its plan, all copies, the partitions that are newer than the used one."""

    planned: RebuiltMetadata
    copies: list[MetadataCopy]
    newer: list[NewerPartition]

    @property
    def is_behind(self) -> bool:
        """Whether the disks show that something is lost."""
        return bool(self.newer) or self.planned.copy.has_damage


def find_rebuilding(paths: Sequence[Path], new: NewVoter, refuse: Refuse) -> Rebuilding:
    """Looks at the copies at some paths, and at the partitions there. Errors are those of its parts."""
    copies = metadata_copies(paths, refuse)
    planned = plan_rebuilt(copies, new)
    return Rebuilding(planned, copies, newer_partitions(paths, planned.copy.found, refuse))
