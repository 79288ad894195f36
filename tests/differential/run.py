"""One run: the same calls to every server, and what differs."""

import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.differential.calls import calls
from tests.differential.codec import FACTS
from tests.differential.compare import answer_of, differences
from tests.differential.scenes import GIVES, IS_READ, MADE, READS, Scene, ending, group_of

# Calls that end or change the server itself.
LEFT_OUT = {"shutdown": "ends the server", "reinitialize": "oneway", "getCpuProfile": "runs a profiler"}


SLOW = 2.0


class Difference(NamedTuple):
    """One field in which an answer of ours is another than a real metastore's."""

    version: str
    method: str
    line: str
    where: str
    theirs: object
    ours: object
    why: str
    """The two answers, where one refused."""

    @property
    def text(self):
        """Return the text that patterns of known differences are matched with."""
        return f"{self.version} {self.method} {self.line}"


def has(version, method):
    facts = FACTS["methods"][method]
    return version == "ours" or (facts["since"] <= version <= (facts.get("until") or "9"))


class Run:
    """Calls sent to the servers, with what was answered."""

    def __init__(self, servers):
        self.servers = servers
        self.pool = ThreadPoolExecutor(len(servers))
        self.found, self.unknown, self.asked, self.called, self.as_hive_4 = [], set(), 0, set(), 0
        self.log, self._scene, self._parts, self._number = [], None, None, 0

    def ask(self, method, arguments):
        """Send one call to all servers that have it; return the answers by version."""
        def one(server):
            began = time.monotonic()
            answer = server.connection.call(method, self._scene.sent(arguments, server))
            if time.monotonic() - began > SLOW:
                print(f"{server.version} took {time.monotonic() - began:.1f} s for {method} {json.dumps(arguments)[:300]}", file=sys.stderr, flush=True)
            if answer[0] == "ok" and method in GIVES:
                name, give = GIVES[method]
                try:
                    server.known[name] = give(answer[1])
                except (KeyError, IndexError, TypeError):
                    server.known.pop(name, None)
            return server, answer
        return {server.version: (server, answer) for server, answer in
                self.pool.map(one, [server for server in self.servers if has(server.version, method)])}

    def compare(self, method, where, arguments):
        """Send one call and note how the answers differ; return None if all refused, True if none did."""
        answers = self.ask(method, arguments)
        self.asked += 1
        self.called.add(method)
        ours = answers.pop("ours")
        if ours[1][0] == "unknown":
            self.unknown.add(method)
            return False
        plain = {version: answer_of(method, answer, server, self._scene, version) for version, (server, answer) in answers.items()}
        self.judge(method, where, ours, plain, {version: answer[1:] for version, (_, answer) in answers.items()})
        self.log.append((self._scene.name, method, where, arguments, plain))
        outcomes = [answer[0] for _, answer in [ours, *answers.values()]]
        return None if "ok" not in outcomes else all(outcome == "ok" for outcome in outcomes)

    def judge(self, method, where, ours, answers, said):
        """Note how our answer differs from the real answers by version; 2.3.10 counts only where 4.0.1 does not answer as we do."""
        is_as_4 = False
        for version in sorted(answers, reverse=True):
            theirs, mine = answers[version], answer_of(method, ours[1], ours[0], self._scene, version)
            if theirs == mine:
                is_as_4 |= version == "4.0.1"
            elif version == "2.3.10" and "4.0.1" in answers:
                self.as_hive_4 += is_as_4
            else:
                why = f"{said.get(version, '')} | {ours[1][1:]}"[:600] if theirs[0] != mine[0] or isinstance(theirs, str) else ""
                self.found.extend(Difference(version, method, line, where, theirs, mine, why) for line in differences(theirs, mine))

    def again(self, recorded):
        """Send recorded calls to our server, and compare with the answers that were recorded."""
        for scene, method, where, arguments, answers in recorded:
            if self._scene is None or self._scene.name != scene:
                self.end()
                self._scene = Scene(scene.removeprefix("scene"))
            asked = self.ask(method, arguments)
            self.asked += 1
            if asked["ours"][1][0] != "unknown":
                self.judge(method, where, asked["ours"], answers, {})
        self.pool.shutdown()

    def set_up(self, parts):
        if self._scene is None or self._parts != parts:
            self.end()
            self._number += 1
            self._scene, self._parts = Scene(self._number), parts
            for part in parts.split():
                for method, arguments, *only in MADE[part]:
                    if only:
                        self.tell(method, arguments, only[0])
                    else:
                        self.compare(method, f"scene {part}", arguments)

    def tell(self, method, arguments, versions):
        """Send a call to some servers, without a comparison."""
        self.log.append((self._scene.name, method, "", arguments, {}))
        for server in self.servers:
            if server.version in versions:
                server.connection.call(method, self._scene.sent(arguments, server))

    def end(self):
        """Take the scene away everywhere."""
        def one(server):
            for method, arguments in ending(server):
                server.connection.call(method, self._scene.sent(arguments, server))
        if self._scene is not None:
            list(self.pool.map(one, self.servers))
        self._scene = None

    def method(self, method, most, seed):
        """Send the calls of one method."""
        parts, reads = group_of(method)
        for where, arguments in calls(method, most, seed):
            self.set_up(parts)
            agreed = self.compare(method, where, arguments)
            if agreed is not None and not IS_READ.fullmatch(method):
                for probe, asked in READS[reads] if agreed else ():
                    self.compare(probe, f"after {method} {where}", asked)
                self.end()
            if method in self.unknown:
                break

    def all(self, most, seed, only=".*"):
        for method in sorted(FACTS["methods"], key=lambda name: (group_of(name), name)):
            if re.fullmatch(only, method) and method not in LEFT_OUT:
                self.method(method, most, seed)
        self.end()
