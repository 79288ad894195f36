"""Files through Spark's JVM: with the file systems and credentials of the data frames.

Rule: the class moves files and reads ORC footers with the JVM's own reader; it knows nothing of tables or transactions.
"""

from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from metastore.spark.jvm.compiled import jvm_of


@dataclass(frozen=True)
class Hadoop:
    """The Hadoop file systems of a Spark session: a ``metastore.files.FileSystem`` with the JVM's credentials.

    Paths are URIs; a path without scheme is on the default file system.
    """

    spark: SparkSession

    def exists(self, path: str) -> bool:
        """Return True if there is a file or directory."""
        return bool(self._fs(path).exists(self._path(path)))

    def children(self, path: str) -> list[tuple[str, bool]]:
        """Return the names directly below a directory, each with True for a directory."""
        entries = self._fs(path).listStatus(self._path(path))
        return [(status.getPath().getName(), bool(status.isDirectory())) for status in entries]

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return int(self._fs(path).getFileStatus(self._path(path)).getLen())

    def mkdirs(self, path: str) -> None:
        """Make a directory and its parents. Raises: OSError."""
        if not self._fs(path).mkdirs(self._path(path)):
            raise _refused(f"make the directory {path}")

    def rename(self, source: str, target: str) -> None:
        """Rename. Raises: FileExistsError if the target exists (Hadoop would move *into* a directory); OSError."""
        if self.exists(target):
            raise FileExistsError(f"{target} exists already")
        if not self._fs(source).rename(self._path(source), self._path(target)):
            raise _refused(f"rename {source} to {target}")

    def delete(self, path: str) -> None:
        """Remove a file or a whole directory, if it exists."""
        self._fs(path).delete(self._path(path), True)  # noqa: FBT003 - Java's signature

    def read(self, path: str) -> bytes:
        """Return the content of a small file."""
        with closing(self._fs(path).open(self._path(path))) as source:
            return bytes(self._whole(source))

    def write(self, path: str, content: bytes) -> None:
        """Write a small new file."""
        out = self._fs(path).create(self._path(path), False)  # noqa: FBT003
        try:
            out.write(bytearray(content))
        finally:
            out.close()

    def rows(self, path: str) -> int:
        """Return the number of rows of an ORC file, from its footer."""
        with self._orc_reader(path) as reader:
            return int(reader.getNumberOfRows())

    def parquet_rows(self, path: str) -> int:
        """Return the number of rows of a Parquet file, from its footer."""
        parquet = self._jvm.org.apache.parquet.hadoop
        source = parquet.util.HadoopInputFile.fromPath(self._path(path), self._configuration)
        with closing(parquet.ParquetFileReader.open(source)) as reader:
            return int(reader.getRecordCount())

    def write_empty_orc(self, path: str, schema: str, entries: dict[str, bytes]) -> None:
        """Write an ORC file without rows; ``schema`` in ORC's type language.

        Its footer is compressed too: by zlib, since ORC's own choice since version 2 is zstd, unknown to Hive before 4.
        """
        orc = self._jvm.org.apache.orc
        options = orc.OrcFile.writerOptions(self._configuration).setSchema(orc.TypeDescription.fromString(schema))
        writer = orc.OrcFile.createWriter(self._path(path), options.compress(orc.CompressionKind.ZLIB))
        for name, value in entries.items():
            writer.addUserMetadata(name, self._jvm.java.nio.ByteBuffer.wrap(bytearray(value)))
        writer.close()

    def _orc_reader(self, path: str) -> closing[Any]:
        orc = self._jvm.org.apache.orc.OrcFile
        return closing(orc.createReader(self._path(path), orc.readerOptions(self._configuration)))

    def _fs(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._configuration)

    def _path(self, path: str) -> Any:
        return self._path_class(path)

    @cached_property
    def _path_class(self) -> Any:
        """The class Path, kept since PySpark looks up every part of such a name in the JVM."""
        return self._jvm.org.apache.hadoop.fs.Path

    @cached_property
    def _whole(self) -> Any:
        return self._jvm.org.apache.commons.io.IOUtils.toByteArray

    @property
    def _jvm(self) -> Any:
        return jvm_of(self.spark)

    @cached_property
    def _configuration(self) -> Any:
        return self.spark._jsc.hadoopConfiguration()  # noqa: SLF001


def _refused(change: str) -> OSError:
    """Return an error for a change that Hadoop refused without a reason."""
    return OSError(f"The file system refuses to {change}: is it read-only, or is a right missing?")
