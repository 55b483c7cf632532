"""Groups: how far they are behind, and when they committed last."""

from kseg.counted import counted
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.commands import line_of
from kseg.report.gathered import Gathered
from kseg.report.numbers import DAY_MS, age_text, count_text
from kseg.views.group import Group

_STALE_MS, _WORTH_LAG = 7 * DAY_MS, 1000
_COLUMNS = (
    CellColumn("group", "Group"),
    CellColumn("state", "State"),
    CellColumn("topic", "Topic"),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("lag", "Lag", CellKind.COUNT),
    CellColumn("lastCommit", "Last commit", CellKind.TIME),
)


def groups_block(known: Gathered) -> Block:
    """Groups of `__consumer_offsets`, if it is here."""
    if known.groups is None:
        return Block("groups", "Groups")
    rows = tuple(row for group in known.groups for row in _rows(group))
    verdicts = []
    behind = sorted(
        (row for row in rows if isinstance(row[4], int) and row[4] >= _WORTH_LAG), key=lambda row: -_number(row[4])
    )
    for row in behind[:3]:
        sentence = f"{row[0]} is {count_text(_number(row[4]))} records behind in {row[2]}."
        verdicts.append(Sentence(sentence, line_of(known, "groups", "--group", str(row[0])), Weight.WATCH))
    now = known.choices.now_ms
    stale = [row for row in rows if 0 < _number(row[5]) < now - _STALE_MS]
    if stale:
        oldest = min(stale, key=lambda row: _number(row[5]))
        groups = len({row[0] for row in stale})
        age = age_text(now - _number(oldest[5]))
        sentence = f"{counted(groups, 'group')} committed nothing for a week; {oldest[0]} not for {age}."
        verdicts.append(Sentence(sentence, line_of(known, "groups")))
    tables = (Table("groups", "By group and topic", _COLUMNS, rows),)
    return Block("groups", "Groups", tuple(verdicts), tables=tables if rows else ())


def _number(value: Cell) -> int:
    return value if isinstance(value, int) else 0


def _rows(group: Group) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for topic in sorted({commit.topic for commit in group.commits}):
        commits = [commit for commit in group.commits if commit.topic == topic]
        lags = [commit.lag for commit in commits]
        lag = None if None in lags else sum(lag for lag in lags if lag is not None)
        last = max(commit.commit_timestamp for commit in commits)
        rows.append((group.group, group.state, topic, len(commits), lag, last if last >= 0 else None))
    return rows
