"""Spark's SQL as sqlglot reads and writes it here: function calls stay as they stand, strings are Spark 4's.

Rule: of a statement only the names of tables change on its way to Spark. sqlglot's own dialect rewrites functions as it
sees fit, log10(1000) to LOG(10, 1000), which is 2.9999999999999996, or to_date(x, 'yyyy-MM-dd') to TO_DATE(x). And it
reads 'it''s' as Spark did before version 4: as two strings, which are "its" together.
"""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType


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

        def _parse_parameter(self) -> exp.Parameter:
            """Spark's are ``${name}`` only: sqlglot takes ``t@v1`` for a table with the alias ``${v1}``."""
            if self._curr.token_type is not TokenType.L_BRACE:
                self.raise_error(
                    "@ and $ stand for nothing here (a version is asked for by VERSION AS OF a write id, "
                    "or by TIMESTAMP AS OF)",
                    self._prev,
                )
            return super()._parse_parameter()

    class Generator(SparkGenerator):
        """A table may be called by words that may not stand behind AS as they are: Spark's strictNonReserved."""

        RESERVED_KEYWORDS: ClassVar[set[str]] = {
            "anti",
            "cross",
            "except",
            "full",
            "inner",
            "intersect",
            "join",
            "lateral",
            "left",
            "minus",
            "natural",
            "on",
            "right",
            "semi",
            "union",
            "using",
        }


DIALECT = "untouched"
