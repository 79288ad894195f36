"""The evidence of a full-ACID compaction for the rule in ``metastore.compaction.working.rules``.

Rule: rows are never read a second time. The evidence is footers, listings and the tasks' counts. Outputs that differ
get a hidden name instead of their final name, so that an operator can look at them. Uploads become files only when they
get their names, so their footers are read after that: but before the transaction commits, so that no reader sees them
either.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metastore.acid.bucket import decode
from metastore.acid.names import parse_file, unproven_directory, unproven_owner
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, hidden_write_ids
from metastore.acid_tables.footers import orc_tails
from metastore.acid_tables.sources import Sources
from metastore.compaction.working.job_specification import CompactionJobSpec
from metastore.compaction.working.rules import (
    Footer,
    InputFile,
    OutputEvidence,
    OutputFile,
    Tally,
    UnprovenError,
    differences,
    footer_differences,
)
from metastore.files import Files
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.write.acid_writer import Staged, WrittenFile


def input_files(files: Files, sources: Sources) -> tuple[InputFile, ...]:
    """Return the files that a job reads, with the numbers of rows in their footers."""
    read = [
        *((source.path, _bucket(source.path), False) for source in sources.events),
        *((source.path, _bucket(source.path), True) for source in sources.deletes),
        *((source.path, decode(source.bucket).writer_id, False) for source in sources.plain),
    ]
    tails = orc_tails(files, (path for path, *_ in read))
    return tuple(
        InputFile(path, bucket, tail.rows, is_of_deletes)
        for (path, bucket, is_of_deletes), tail in zip(read, tails, strict=True)
    )


@dataclass(frozen=True)
class JobProof:
    """The proof of a job.

    ``state`` and ``write_ids``: the directories that it compacts, and the events that it sees.
    """

    hadoop: Hadoop
    files: Files
    spec: CompactionJobSpec
    state: AcidState
    write_ids: ValidWriteIdList
    lowest_write_id: int
    staged: Sequence[str] | None = None
    """Files of an earlier step of the job, which are read instead of the state's directories."""

    def require_staged(
        self,
        kind: str,
        read: Sequence[InputFile],
        staged: Sequence[Staged],
        tallies: Iterable[Tally],
        shares: Sequence[int] = (),
    ) -> None:
        """Raise UnprovenError unless the staged directories hold the inputs' rows.

        ``kind``: what made it, which need not be the whole job; ``shares``: as ``OutputEvidence.dealt``.
        """
        evidence = OutputEvidence(
            kind=kind,
            highest_write_id=self.spec.highest_write_id,
            txn_id=self.spec.txn_id,
            lowest_write_id=self.lowest_write_id,
            may_hide=self.may_hide,
            there=self._there(),
            inputs=tuple(read),
            tallies=tuple(tallies),
            outputs=tuple(
                output
                for directory in staged
                for output in self._outputs(directory, "" if directory.uploads else directory.out)
            ),
            directories=tuple(directory.name for directory in staged),
            dealt=tuple(shares),
        )
        if wrong := differences(evidence):
            kept = [(directory.out, str(directory.name)) for directory in staged if not directory.uploads]
            raise UnprovenError(wrong, self._set_aside(kept))

    def require_uploaded(self, published: Sequence[Staged]) -> None:
        """Raise UnprovenError unless the uploaded files' footers say what their tasks reported."""
        uploaded = [directory for directory in published if directory.uploads]
        outputs = [output for directory in uploaded for output in self._outputs(directory, directory.path)]
        if wrong := [text for output in outputs for text in footer_differences(output)]:
            raise UnprovenError(
                wrong, self._set_aside([(directory.path, str(directory.name)) for directory in uploaded])
            )

    def _there(self) -> tuple[str, ...]:
        """Return every file with rows, from the listing alone: the job's readers may have lost some."""
        if self.staged is not None:
            return tuple(self.staged)
        state, chosen = self.state, list[BaseDirectory | DeltaDirectory](self.state.insert_deltas)
        if state.base is not None:
            chosen.append(state.base)
        files = [file for directory in chosen for file in directory.bucket_files or directory.files]
        files += [file for delta in state.delete_deltas for file in delta.bucket_files]
        return tuple(f"{self.spec.location}/{file.path}" for file in (*files, *state.originals) if file.size)

    @property
    def may_hide(self) -> bool:
        """True if inputs may hold events that do not count: of aborted write ids, or of Hive before 3.

        Files of an earlier step hold none.
        """
        if self.staged is not None:
            return False
        marked = [*self.state.insert_deltas, *([self.state.base] if self.state.base else [])]
        return bool(hidden_write_ids(self.state.deltas, self.write_ids)) or not all(
            directory.is_marked for directory in marked
        )

    def _outputs(self, directory: Staged, readable: str) -> list[OutputFile]:
        """Return the files of a directory, with their footers if ``readable`` says that the files exist."""
        paths = [f"{readable}/{file.path}" for file in directory.files] if readable else []
        footers: list[Footer | None] = [
            Footer(tail.rows, tail.stripes, tail.fields, tail.notes) for tail in orc_tails(self.files, paths)
        ]
        return [
            _output(directory, file, footer)
            for file, footer in zip(directory.files, footers or [None] * len(directory.files), strict=True)
        ]

    def _set_aside(self, directories: Sequence[tuple[str, str]]) -> str:
        """Move these (path, name) below a hidden name, in place of an earlier attempt's; return the name, or ""."""
        location = self.spec.location
        for name, _ in self.hadoop.children(location):
            if unproven_owner(name) is not None:
                self.hadoop.delete(f"{location}/{name}")
        if not directories:
            return ""
        aside = f"{location}/{unproven_directory(self.spec.txn_id)}"
        self.hadoop.mkdirs(aside)
        for path, name in directories:
            self.hadoop.rename(path, f"{aside}/{name}")
        return aside


def _output(directory: Staged, file: WrittenFile, footer: Footer | None) -> OutputFile:
    plain = OutputFile(directory.name, file.path, file.bucket, file.rows, footer=footer)
    report = file.report
    if report is None:
        return plain
    return plain._replace(
        unsorted=report.unsorted,
        times=report.times,
        last=report.last,
        first_row_id=report.first_row_id,
        jumps=report.jumps,
    )


def _bucket(path: str) -> int:
    return parse_file(path.rpartition("/")[2]).bucket
