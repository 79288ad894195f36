"""The images without Docker: their Dockerfiles replayed into a root of our own, and what starts there (`make images-check`).

For `FROM python:...` stands a Debian with its Python, made by debootstrap and kept in .data/images. What runs there runs as
in a container: without root, on a read-only file system but for /tmp and the warehouse, with process ids, mounts and a
network of its own. Needs root, debootstrap, unshare.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.dockerfiles import instructions

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / ".data" / "images"
DEBIAN = "bookworm"
USER = "10001"

pytestmark = [pytest.mark.timeout(3600), pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("debootstrap"), reason="needs root and debootstrap")]


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, text=True, **more)


@pytest.fixture(scope="session")
def debian():
    base = IMAGES / "base"
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", DEBIAN, base)
        (base / "made").touch()
    return base


def in_root(root, command, environment):
    """Run a Dockerfile's command in ``root``, as root, with this machine's network and its settings of pip."""
    outside = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and name != "PIP_FIND_LINKS"}
    script = 'mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; exec chroot "$0" bash -c "$1"'
    run("unshare", "--mount", "--pid", "--fork", "bash", "-c", script, root, command,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **outside, "HOME": "/root", **environment})


def source_files():
    left_out = (ROOT / ".dockerignore").read_text().split()
    files = run("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", capture_output=True).stdout.splitlines()
    return sorted(one for one in files if one.split("/")[0] not in left_out and (ROOT / one).is_file())


def replayed(kind, debian):
    """Return the image that a Dockerfile describes, its root directory built by the same steps. An unchanged source is not built again."""
    image, stage, stamp = SimpleNamespace(env={}, labels=""), None, IMAGES / f"{kind}.made"
    made = hashlib.sha256(b"".join(one.encode() + (ROOT / one).read_bytes() for one in source_files())).hexdigest()
    is_made = stamp.exists() and stamp.read_text() == made
    for name, rest in instructions(kind):
        if name == "FROM":
            stage = "build" if rest.endswith(" AS build") else kind
            root = IMAGES / (f"{kind}-build" if stage == "build" else kind)
        if is_made and name in ("FROM", "COPY", "RUN"):
            continue
        if name == "FROM":
            stamp.unlink(missing_ok=True)
            shutil.rmtree(root, ignore_errors=True)
            run("cp", "-a", debian, root)
            for shared in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
                shutil.copyfile(Path("/") / shared, root / shared)
            if stage == "build":
                (root / "source").mkdir()
        elif name == "COPY" and rest == ". /source":
            for one in source_files():
                (root / "source" / one).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / one, root / "source" / one)
        elif name == "COPY":
            *options, source, target = rest.split()
            assert "--from=build" in options
            run("cp", "-a", IMAGES / f"{kind}-build" / source[1:], root / target[1:])
            if "--chmod=755" in options:
                (root / target[1:]).chmod(0o755)
        elif name == "RUN":
            in_root(root, rest, {} if stage == "build" else image.env)
        elif name == "ENV":
            for pair in rest.split():
                key, _, value = pair.partition("=")
                image.env[key] = value.replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
        elif name in ("ENTRYPOINT", "CMD"):
            setattr(image, name.lower(), json.loads(rest))
        elif name == "HEALTHCHECK":
            image.health = json.loads(rest.partition("CMD ")[2])
        elif name == "USER":
            assert rest == f"{USER}:{USER}"
        elif name == "LABEL":
            image.labels += rest
        else:
            assert name in ("ARG", "WORKDIR", "EXPOSE", "STOPSIGNAL"), name
    stamp.write_text(made)
    image.root = root
    return image


def size(folder):
    return int(run("du", "-sm", folder, capture_output=True).stdout.split()[0])


@contextmanager
def container(image, warehouse, *arguments, beside=None, entrypoint=None, environment=None):
    """As a runtime starts it. ``beside``: one whose network it shares, as in a pod."""
    script = ('mount --bind "$0" "$0"; mount --bind "$1" "$0/warehouse"; mount -o remount,bind,ro "$0"; mount -t proc proc "$0/proc"; '
              'mount --bind /dev "$0/dev"; mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"; ip link set lo up; root=$0; shift; '
              f'exec /usr/sbin/chroot --userspec={USER}:{USER} --groups= "$root" /usr/bin/setpriv --no-new-privs --inh-caps=-all --ambient-caps=-all "$@"')
    (image.root / "warehouse").mkdir(exist_ok=True)
    (image.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")  # as runtimes do
    entered = ["nsenter", f"--net=/proc/{beside.pid}/ns/net"] if beside else []
    process = subprocess.Popen(
        [*entered, "unshare", "--mount", "--pid", "--fork", *([] if beside else ["--net"]), "bash", "-c", script, image.root, warehouse,
         *(entrypoint or image.entrypoint), *arguments], cwd="/", env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **image.env, **(environment or {})},
        stdout=subprocess.PIPE if entrypoint else None, text=True)
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(lambda: process.poll() is not None or (children.read_text().strip()))
        yield SimpleNamespace(process=process, pid=int(children.read_text()) if process.poll() is None else None)
    finally:
        for child in (children.read_text().split() if process.poll() is None else []):
            os.kill(int(child), signal.SIGKILL)
        process.wait(60)


def wait_for(condition):
    for _ in range(30000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come true in five minutes")


def done(image, warehouse, command, beside, **environment):
    """Return the output of a command that runs in the image beside a container."""
    with container(image, warehouse, beside=beside, entrypoint=command, environment=environment) as one:
        said, _ = one.process.communicate()
    assert one.process.returncode == 0, said
    return said


def health(image, running):
    """Return the exit code of the image's health check, run in the container as a runtime does."""
    return subprocess.run(
        ["nsenter", f"--target={running.pid}", "--mount", "--pid", "--net", "--root", "--wd", f"--setuid={USER}", f"--setgid={USER}",
         *image.health], env=image.env, check=False, stderr=subprocess.DEVNULL).returncode


def healthy(image, running):
    wait_for(lambda: running.process.poll() is not None or health(image, running) == 0)
    assert running.process.poll() is None
    return json.loads(Path(f"/proc/{running.pid}/root{image.env['METASTORE_READY_FILE']}").read_text())


@pytest.fixture
def warehouse(tmp_path):
    folder = tmp_path / "warehouse"
    folder.mkdir()
    os.chown(folder, int(USER), int(USER))
    tmp_path.chmod(0o755)
    tmp_path.parent.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def server(debian):
    return replayed("server", debian)


@pytest.fixture(scope="session")
def worker(debian):
    return replayed("worker", debian)


def told(image, debian, kind, most):
    whole, base = size(image.root), size(debian)
    print(f"\n{kind}: {whole - base} MB beside a base of {base} MB, {size(image.root / 'opt' / 'metastore')} MB of them /opt/metastore")
    assert whole - base < most
    assert "org.opencontainers.image.title" in image.labels
    pinned = dict(line.split("==") for line in (ROOT / "deploy" / "images" / "constraints.txt").read_text().splitlines()[1:])
    there = {path.name.split("-")[0].lower() for path in image.root.glob("opt/metastore/lib/python3*/site-packages/*.dist-info")}
    assert there - {name.lower().replace("-", "_") for name in pinned} == {"transaction_metastore"}


ASK = """
from metastore.client import MetastoreClient
with MetastoreClient("thrift://127.0.0.1:9083") as client:
    print(client.get_all_databases())
"""


def serving(server, warehouse):
    return container(server, warehouse, *server.cmd, "--warehouse", "file:/warehouse",
                     "--set", "hive.compactor.worker.threads=0")


def test_the_server_answers_from_a_read_only_root_and_ends_with_0(server, debian, warehouse):
    told(server, debian, "server", 600)
    assert not list(server.root.glob("usr/lib/jvm/*"))
    with serving(server, warehouse) as running:
        healthy(server, running)
        status = Path(f"/proc/{running.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{USER}\s+{USER}\s", status, re.MULTILINE)
        assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
        assert "default" in done(server, warehouse, ["python", "-c", ASK], running)
        os.kill(running.pid, signal.SIGTERM)
        assert running.process.wait(60) == 0


WRITE = """
from metastore.client import MetastoreClient
from metastore.streaming import connect
with MetastoreClient("thrift://127.0.0.1:9083") as client:
    t = client.types
    orc = "org.apache.hadoop.hive.ql.io.orc"
    storage = t.StorageDescriptor(cols=[t.FieldSchema("a", "int", None)], inputFormat=orc + ".OrcInputFormat", outputFormat=orc + ".OrcOutputFormat",
                                  serdeInfo=t.SerDeInfo(serializationLib=orc + ".OrcSerde", parameters={}), parameters={})
    client.create_table(t.Table(tableName="facts", dbName="default", sd=storage, partitionKeys=[], tableType="MANAGED_TABLE",
                                parameters={"transactional": "true"}))
    for batch in range(3):
        with connect("default.facts", client=client) as connection, connection.transaction():
            connection.write([{"a": batch}])
    client.compact2(t.CompactionRequest(dbname="default", tablename="facts", type=t.CompactionType.MAJOR))
"""


def test_the_worker_compacts_from_a_read_only_root_and_ends_with_0(server, worker, debian, warehouse):
    told(worker, debian, "worker", 1600)
    with serving(server, warehouse) as running:
        url = healthy(server, running)["database_url"]
        done(worker, warehouse, ["python", "-c", WRITE], running)
        with container(worker, warehouse, *worker.cmd, "--warehouse", "file:/warehouse", "--http-port", "9184", beside=running,
                       environment={"METASTORE_CONF_METASTORE_DATABASE_URL": url}) as working:
            wait_for(lambda: working.process.poll() is not None or list(warehouse.glob("facts/base_*")))
            assert health(worker, working) == 0
            os.kill(working.pid, signal.SIGTERM)
            assert working.process.wait(60) == 0


def test_the_workers_image_is_the_executors_too(worker, warehouse):
    """What Spark starts in the pods of a job; here there is no driver to answer it."""
    said = done(worker, warehouse, ["bash", "-c", "worker-entrypoint executor 2>&1 || true"], None, SPARK_DRIVER_URL="spark://CoarseGrainedScheduler@127.0.0.1:9", SPARK_EXECUTOR_ID="1", SPARK_EXECUTOR_CORES="1", SPARK_EXECUTOR_MEMORY="512m", SPARK_APPLICATION_ID="a", SPARK_EXECUTOR_POD_IP="127.0.0.1", SPARK_JAVA_OPT_0="-Dx=y", SPARK_RESOURCE_PROFILE_ID="0", SPARK_EXECUTOR_POD_NAME="p")
    assert "KubernetesExecutorBackend" in said
    assert re.search(r"Failed to connect to|Connection refused", said), said
