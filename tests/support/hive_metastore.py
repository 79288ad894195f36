"""Apache Hive's own metastore 2.3.10, out of the jars that PySpark ships, on an embedded Derby."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import pyspark

_JARS = Path(pyspark.__file__).parent / "jars" / "*"
_OPENED = ("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
           "java.util.concurrent.atomic", "java.util.regex", "sun.nio.ch", "sun.security.action", "sun.util.calendar")


class HiveMetastore:
    """A running Hive metastore; a context manager."""

    def __init__(self, work: Path, **settings: str) -> None:
        """Choose a free port. ``settings``: more of the metastore's own, with ``__`` for each dot."""
        self.work, self.warehouse = work, work / "warehouse"
        self._settings = {name.replace("__", "."): value for name, value in settings.items()}
        self._java: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._java is not None
        return self._java.pid

    def __enter__(self) -> Self:
        if shutil.which("java") is None:
            raise RuntimeError("Java 17 is missing: install openjdk-17-jre-headless")
        self.warehouse.mkdir(parents=True)
        conf = self.work / "conf"
        conf.mkdir()
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:{self.work / 'derby'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "hive.metastore.warehouse.dir": str(self.warehouse), "hive.metastore.schema.verification": "false",
            "datanucleus.schema.autoCreateAll": "true", "hive.in.test": "true", "datanucleus.connectionPoolingType": "none",
            "hive.async.log.enabled": "false", **self._settings}
        (conf / "hive-site.xml").write_text("<configuration>" + "".join(
            f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
            + "</configuration>")
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        with (self.work / "metastore.log").open("wb") as log:
            self._java = subprocess.Popen(
                ["java", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={self.work}",
                 *opened, "-cp", f"{conf}:{_JARS}", "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p",
                 str(self.port)],
                cwd=self.work, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})
        self._await()
        return self

    def __exit__(self, *_: object) -> None:
        if self._java is not None:
            self._java.send_signal(signal.SIGTERM)
            self._java.wait(30)

    def _await(self) -> None:
        assert self._java is not None
        for _ in range(1200):
            if self._java.poll() is not None:
                raise RuntimeError("Hive's metastore ended:\n" + (self.work / "metastore.log").read_text()[-3000:])
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.1)  # noqa: TID251 - another process is waited for
            else:
                return
        raise RuntimeError("Hive's metastore does not answer")
