"""Expressions of CHECK and DEFAULT: which functions they may call. Pure.

Rule: the writer of a row evaluates an expression in its own process, so the expression may call listed functions only:
none that calls Java (``reflect``, ``java_method``), reads files, or comes out of a jar. Every word in front of a
parenthesis is looked at, and text that two lexers could read in two ways is refused (raw strings, comments, backslashes
in double quotes), so that no engine finds a call that is not found here. An expression is checked when it is declared
and when it is used.
"""

import re

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<word>\w+)
    |(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|"")*")
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<mark>->|::|[-+*/%=<>!&|^~()\[\],.:])""",
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = re.compile(r"--|/\*")
_LONGEST = 10_000
_WORDS = """
    and or not in between when then else case is like ilike rlike regexp any all some div cast try_cast decimal dec
    numeric char varchar
"""
"""Words and types before a parenthesis that are not functions, and functions of the same spelling."""
_QUERIES = frozenset(["select", "table", "lateral", "using"])
"""Words of queries; the last one is of those that run a program (MAP a USING 'program')."""
_NAMES = """
    coalesce ifnull nvl nvl2 nullif nullifzero zeroifnull if iff isnull isnotnull isnan nanvl equal_null greatest
    least assert_true
    abs acos acosh asin asinh atan atan2 atanh bin bit_count bround cbrt ceil ceiling conv cos cosh cot csc degrees
    e exp expm1 factorial floor getbit hex hypot ln log log10 log1p log2 mod negative pi pmod positive pow power
    radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add
    try_divide try_mod try_multiply try_subtract unhex width_bucket tinyint smallint int integer bigint float double
    boolean string binary to_number try_to_number
    ascii base64 bit_length btrim char_length character_length chr concat concat_ws contains decode elt encode
    endswith find_in_set format_number format_string initcap instr lcase left length len levenshtein locate lower
    lpad ltrim luhn_check mask md5 octet_length overlay position printf quote regexp_count regexp_extract
    regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr replace reverse right rpad rtrim
    sentences sha sha1 sha2 crc32 hash xxhash64 soundex split split_part startswith substr substring substring_index
    to_binary to_char to_varchar translate trim try_to_binary ucase unbase64 upper url_encode url_decode parse_url
    is_valid_utf8
    add_months convert_timezone curdate current_date current_timestamp current_timezone date date_add date_diff
    date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth
    dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day localtimestamp make_date
    make_timestamp minute month monthname months_between next_day now quarter second timestamp timestamp_micros
    timestamp_millis timestamp_seconds to_date to_timestamp to_unix_timestamp to_utc_timestamp trunc
    try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
    current_user session_user user uuid rand random randn
    array array_contains array_distinct array_except array_intersect array_join array_max array_min array_position
    array_remove array_size array_sort array_union arrays_overlap cardinality element_at exists filter flatten
    forall get map map_contains_key map_from_arrays map_keys map_values named_struct size slice sort_array struct
    transform try_element_at get_json_object json_array_length json_object_keys
"""
"""Functions of Spark and Hive that compute a value of their arguments, the time or the user: conditions, numbers,
texts, times, who and what is random, nested values."""
FUNCTIONS = frozenset(_NAMES.split())
_CALLED = FUNCTIONS.union(_WORDS.split())


def refused_expression(text: str) -> str | None:
    """Return the reason why another user's CHECK or DEFAULT must not be evaluated; None if it may be."""
    if len(text) > _LONGEST:
        return f"it has more than {_LONGEST} characters"
    at, before = 0, [("mark", ""), ("mark", "")]
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or _COMMENTS.match(text, at):
            return f"nothing but a plain expression is evaluated, and this is none from {text[at : at + 20]!r} on"
        kind, token, at = str(found.lastgroup), found[0], found.end()
        if kind == "word" and token.lower() == "r" and text[at : at + 1] in ("'", '"'):
            return f"raw strings like {text[found.start() : at + 10]!r} are not taken: write it without r"
        if kind == "word" and token.lower() in _QUERIES:
            return f"it has a query in it ({token})"
        if found["mark"] == "(" and (why := _refused_call(before)) is not None:
            return why
        if kind != "blank":
            before = [before[1], (kind, token)]
    return None


def _refused_call(before: list[tuple[str, str]]) -> str | None:
    """Return why a parenthesis may not follow these two tokens."""
    (_, first), (kind, token) = before
    if kind == "mark":
        return None if token not in (")", "]") else "what is in front of a parenthesis is no function"
    name = token.lower()
    if kind == "word" and first != "." and name in _CALLED:
        return None
    whole = f"{'...' if first == '.' else ''}{token}"
    return (
        f"the function {whole} is none that may be called when others write: only known functions of Spark and Hive "
        "are, without a database in front of them"
    )
