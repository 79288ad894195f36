"""Spark's SQL as sqlglot reads definitions here: function calls stay as they stand, strings are Spark 4's.

Rule: sqlglot's own dialect rewrites functions as it sees fit, log10(1000) to LOG(10, 1000), which is not quite 3. It
reads 'it''s' as Spark did before version 4, too: as two strings, which are "its" together.
"""

from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser


class Untouched(Spark):
    """Spark without sqlglot's knowledge of single functions."""

    NORMALIZE_FUNCTIONS = False

    class Tokenizer(Spark.Tokenizer):
        """A quote that is written twice stands for one."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(SparkParser):
        """Calls are parsed as calls of functions that nobody knows."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}


DIALECT = "untouched"
