"""Headers of records as maps."""

from collections import Counter
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

HEADER_MAP = pa.map_(pa.string(), pa.binary())


def header_maps(lists: pa.ListArray) -> pa.MapArray:
    """Convert lists of headers to maps. The last header of a name is used, like `lastHeader` in Kafka."""
    pairs, rows = lists.flatten(), pc.list_parent_indices(lists)
    places = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(pairs)), start=-1)
    named = pa.table({"row": rows, "name": pairs.field("key"), "place": places})
    last = named.group_by(["row", "name"]).aggregate([("place", "max")]).column("place_max")
    if len(last) == len(pairs):
        offsets = pc.subtract(lists.offsets, lists.offsets[0])
        return pa.MapArray.from_arrays(offsets, pairs.field("key"), pairs.field("value"))
    kept = last.combine_chunks().sort()
    pairs, counts = pairs.take(kept), Counter(rows.take(kept).to_pylist())
    offsets = pa.array(accumulate((counts[row] for row in range(len(lists))), initial=0), pa.int32())
    return pa.MapArray.from_arrays(offsets, pairs.field("key"), pairs.field("value"))
