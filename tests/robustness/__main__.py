"""``python -m tests.robustness``: run histories by seed; exits with 1 when a rule is broken.

    python -m tests.robustness --seeds 1-200      python -m tests.robustness --seeds 17 --planted lock_matrix
"""

import argparse
import signal
import sys
from collections import Counter

from metastore.telemetry import logs
from tests.robustness.harness.run import Cluster

PER_CLUSTER, ACTIONS = 20, 12


def seeds_of(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness")
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("1-20"), help="one seed, or FIRST-LAST")
    parser.add_argument("--actions", type=int, default=ACTIONS, help="of each of a history's twelve client threads")
    parser.add_argument("--planted", default="", help="a bug to start the servers with")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--chart", action="store_true", help="the chart's shape: TLS, servers that do not compact, two workers")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))   # not without stopping what was started
    logs.configure("critical", "console")   # that PostgreSQL was found dead is no news
    totals: Counter[str] = Counter()
    failed = []
    seeds = options.seeds
    while seeds:
        with Cluster(options.planted, chart=options.chart) as cluster:
            for seed in seeds[:PER_CLUSTER]:
                outcome = cluster.run(seed, options.actions, faults=not options.no_faults)
                totals.update(outcome.counts)
                totals.update(f"fault: {fault.name}" for fault in outcome.faults)
                totals["histories"] += 1
                print(outcome, flush=True)
                for anomaly in outcome.anomalies:
                    print(f"    {anomaly.kind}: {anomaly.text}", flush=True)
                if outcome.anomalies:
                    failed.append(seed)
                    print(f"    kept in {outcome.where}; again: make robustness SEED={seed}{' CHART=1' if options.chart else ''}", flush=True)
            totals.update(cluster.timeouts())
        seeds = seeds[PER_CLUSTER:]
    print("; ".join(f"{what} {count}" for what, count in sorted(totals.items())))
    print(f"broken in {len(failed)} of {totals['histories']} histories{': ' if failed else ''}{', '.join(map(str, failed))}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
