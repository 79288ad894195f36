"""A runner of all benchmarks, one after the other.

python -m benchmarks [--quick] [NAME ...]      make bench ARGS="startup"
"""

import argparse
import importlib
import subprocess
import sys

# fmt: off
# Each benchmark with arguments that make it short: a short run shows that it works, not how fast it is.
BENCHMARKS = {
    "call_counts": [],
    "startup": ["--runs", "1", "--idle", "1"],
    "thrift_server": ["--runs", "1", "--seconds", "0.5"],
    "upstream": ["--runs", "1", "--calls", "200"],
    "tls": ["--runs", "1", "--seconds", "0.5", "--handshakes", "50", "--idle", "100"],
    "transactions": ["--runs", "1", "--seconds", "1", "--warmup", "0.2", "--clients", "8", "--small", "--only",
                     "open + commit,full writer,lock + unlock"],
    "large_answers": ["--runs", "1", "--scale", "0.01", "--no-peers"],
    "alone": ["--runs", "1", "--seconds", "0.3", "--no-peers"],
    "time_line": ["--calls", "50"],
    "large_catalog": ["--tables", "2000", "--partitions", "5000"],
    "fairness": ["--seconds", "5", "--peers", ""],
    "events": ["--rounds", "1", "--seconds", "0.5", "--clients", "1"],
    "sustained": ["--minutes", "0.2", "--interval", "4"],
    "retention": ["--finished", "50000", "--calls", "50"],
    "compaction_policy": ["--days", "1", "--load", "merges", "deletes"],
    "compaction_queue": ["--requests", "50", "--pauses", "0"],
    "initiator_cycle": ["--partitions", "200", "--threads", "2"],
    "streaming": ["--runs", "1", "--rows", "20000"],
    "acid_tables": ["--runs", "1", "--rows", "50000"],
}
# Arguments for a run beside the others, where the default takes long (`make bench-sustained`).
SHORTER = {
    "thrift_server": ["--runs", "1", "--seconds", "2"],
    "transactions": ["--runs", "2"],
    "compaction_policy": ["--days", "3"],
    "sustained": ["--minutes", "2", "--interval", "20"],
}


# fmt: on
def main() -> int:
    """Run the benchmarks that were named, or all. Return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="a single short run of each")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    failed = []
    for name in options.names or BENCHMARKS:
        about = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").split("\n", 1)[0]
        print(f"\n## {name}: {about}\n", flush=True)
        chosen = BENCHMARKS[name] if options.quick else SHORTER.get(name, [])
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *chosen], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
