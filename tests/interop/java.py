"""Java programs of others for the interop tests: found, fetched with Maven by coordinates, compiled against, talked to."""

import json
import os
import shutil
import subprocess
import threading
from collections import deque
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

BUILT = Path(__file__).parents[2] / ".data" / "interop"
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (
    "java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
    "java.util.concurrent.atomic", "java.util.regex", "sun.nio.ch", "sun.security.action", "sun.util.calendar")]


@cache
def java_home(least: int) -> Path:
    """Return the oldest Java with a compiler on this machine that is not older than ``least``; skip the test if there is none."""
    homes = {Path(shutil.which("javac") or "/").resolve().parents[1], *Path("/usr/lib/jvm").glob("*")}
    found = []
    for home in homes:
        if (home / "bin" / "javac").exists():
            text = subprocess.run([home / "bin" / "javac", "-version"], capture_output=True, text=True, check=True)
            found.append((int((text.stdout + text.stderr).split()[-1].split(".")[0]), home))
    chosen = min((one for one in found if one[0] >= least), default=None)
    if chosen is None:
        pytest.skip(f"Java {least} or later with a compiler is missing")
    return chosen[1]


def fetched(pom: Path, profile: str, name: str | None = None) -> str:
    """Return the class path of a profile of ``pom``, fetched at the first use (and when ``pom`` changed) and kept below ``name``."""
    jars = BUILT / (name or profile) / "jars"
    used = jars.with_name("pom.xml")
    if not (jars.exists() and used.exists() and used.read_bytes() == pom.read_bytes()):
        if shutil.which("mvn") is None:
            pytest.skip("Maven is missing: install the package maven")
        fresh = jars.with_name("fetching")
        shutil.rmtree(fresh, ignore_errors=True)
        subprocess.run(["mvn", "-q", "-B", "-f", pom, f"-P{profile}", "dependency:copy-dependencies",
                        f"-DoutputDirectory={fresh}"], check=True)
        shutil.rmtree(jars, ignore_errors=True)
        fresh.rename(jars)
        shutil.copy(pom, used)
    return str(jars / "*")


def compiled(source: Path, home: Path, jars: str, name: str) -> str:
    """Compile the source and return a class path with its classes before the jars."""
    classes = BUILT / name / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    subprocess.run([home / "bin" / "javac", "-nowarn", "-proc:none", "-cp", jars, "-d", classes, source], check=True)
    return f"{classes}:{jars}"


class JavaError(Exception):
    """The Java side threw; the text is its message and trace."""


class Answering:
    """A Java program that answers JSON lines; a context manager."""

    def __init__(self, source: Path, name: str, pom: Path, *arguments: str, least: int = 17, heap: str = "1g",
                 is_measured: bool = False, folder: Path | None = None) -> None:
        home = java_home(least)
        path = compiled(source, home, fetched(pom, name), name)
        quick = [] if is_measured else ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._command = [str(home / "bin" / "java"), f"-Xmx{heap}", *quick, "-Duser.timezone=UTC", *OPENED, "-cp", path,
                         source.stem, *arguments]
        self._home, self._folder = str(home), folder
        self._noise: deque[str] = deque(maxlen=400)

    def __enter__(self) -> Self:
        self._java = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, encoding="utf-8",
                                      cwd=self._folder, env={**os.environ, "JAVA_HOME": self._home})
        self._drainer = threading.Thread(target=lambda: self._noise.extend(self._java.stderr), daemon=True)
        self._drainer.start()
        self._answer()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._java.stdin.close()
        try:
            self._java.wait(60)
        except subprocess.TimeoutExpired:
            self._java.kill()
            self._java.wait()
        self._drainer.join()
        self._java.stdout.close()
        self._java.stderr.close()

    def ask(self, **question: Any) -> Any:
        """One question. Raises: JavaError."""
        self._java.stdin.write(json.dumps(question) + "\n")
        self._java.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        line = self._java.stdout.readline()
        if not line:
            raise JavaError("The JVM ended:\n" + "".join(self._noise)[-6000:])
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(f"{answer['error']}\n{answer['trace']}")
        return answer["answer"]
