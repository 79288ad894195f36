"""Every shape of the chart against a real API server (`make cluster-check`): kube-apiserver and etcd, no kubelet.

The server judges what schemas cannot: admission, defaults, rights, and whether pods may run where Pod Security is
"restricted". Namespaces are labelled so; a violation is a warning of the server's, and fails the test.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from metastore import __version__
from tests.support import how_to

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".data" / "go" / "bin"
CHART = ROOT / "deploy" / "helm" / "transaction-metastore"
SHAPES = sorted(path.stem for path in (CHART / "ci").glob("*.yaml"))
SIDECARS = sorted((ROOT / "deploy" / "sidecar").glob("*.yaml"))

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(not (BIN / "kube-apiserver").exists(), reason="tools/apiserver.sh builds it")]


def definition(group, version, kind):
    plural = kind.lower() + "s"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {
                         "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(condition):
    for _ in range(12000):
        if condition():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it did not come true in four minutes")


class Cluster:
    def __init__(self, place, config, api):
        self.api = api
        self.environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(place)}

    def run(self, *command, given=None, check=True):
        return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True, env=self.environment,
                              input=given)

    def kubectl(self, *command, **more):
        return self.run(shutil.which("kubectl"), *command, **more)

    def namespace(self, name):
        """One where Pod Security is restricted."""
        self.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "labels": {f"pod-security.kubernetes.io/{how}": "restricted" for how in ("enforce", "warn")}}}))
        self.kubectl("create", "serviceaccount", "default", "-n", name, check=False)
        return name


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    place = tmp_path_factory.mktemp("cluster")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (place / "sa.key").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()))
    (place / "tokens").write_text('admin-of-a-test,admin,admin,"system:masters"\n')
    client, peer, port = free_port(), free_port(), free_port()
    etcd, api = f"http://127.0.0.1:{client}", f"https://127.0.0.1:{port}"
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
              "clusters": [{"name": "c", "cluster": {"server": api, "insecure-skip-tls-verify": True}}],
              "users": [{"name": "u", "user": {"token": "admin-of-a-test"}}]}
    (place / "config").write_text(yaml.safe_dump(config))
    (place / "config").chmod(0o600)
    commands = {
        "etcd": [BIN / "etcd", "--data-dir", place / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                 "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync"],
        "api": [BIN / "kube-apiserver", f"--etcd-servers={etcd}", f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={place}",
                f"--service-account-key-file={place}/sa.key", f"--service-account-signing-key-file={place}/sa.key",
                "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC", f"--token-auth-file={place}/tokens",
                "--service-cluster-ip-range=10.0.0.0/24", "--max-requests-inflight=50"]}
    one = Cluster(place, place / "config", api)
    with ExitStack() as running:
        for name, command in commands.items():
            log = running.enter_context((place / f"{name}.log").open("w"))
            process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
            running.callback(process.wait, 60)
            running.callback(process.kill)
            if name == "etcd":
                wait_for(lambda: _answers(f"{etcd}/health"))
        wait_for(lambda: process.poll() is not None or one.kubectl("get", "--raw", "/readyz", check=False).returncode == 0)
        assert process.poll() is None, (place / "api.log").read_text()[-3000:]
        for kind in (definition("cert-manager.io", "v1", "Certificate"), definition("monitoring.coreos.com", "v1", "ServiceMonitor")):
            one.kubectl("apply", "-f", "-", given=json.dumps(kind))
        one.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
        yield one


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_rendered_is_taken_without_a_warning(cluster, shape):
    namespace = cluster.namespace(f"rendered-{shape}")
    done = cluster.kubectl("apply", "--server-side", "--validate=strict", "-n", namespace, "-f", ROOT / "deploy" / "k8s" / f"{shape}.yaml")
    assert "serverside-applied" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("shape", SHAPES)
def test_helm_installs_upgrades_and_removes_it(cluster, shape):
    """Hooks apart: nobody here runs a job."""
    namespace = cluster.namespace(f"helm-{shape}")
    values = ("-n", namespace, "--no-hooks", "-f", CHART / "ci" / f"{shape}.yaml")
    cluster.run(BIN / "helm", "install", "metastore", CHART, *values)
    cluster.run(BIN / "helm", "upgrade", "metastore", CHART, *values, "--set", "settings.hive\\.txn\\.timeout=700s")
    assert json.loads(cluster.run(BIN / "helm", "status", "metastore", "-n", namespace, "-o", "json").stdout)["info"]["status"] == "deployed"
    cluster.run(BIN / "helm", "uninstall", "metastore", "-n", namespace, "--no-hooks")


def test_a_worker_that_submits_to_the_cluster_may_do_that_and_no_more(cluster):
    namespace = cluster.namespace("rights")
    cluster.run(BIN / "helm", "install", "metastore", CHART, "-n", namespace, "--no-hooks", "-f", CHART / "ci" / "closed.yaml")

    def may(account, verb, what):
        what, _, part = what.partition("/")
        return cluster.kubectl("auth", "can-i", verb, what, f"--subresource={part}", "-n", namespace, f"--as=system:serviceaccount:{namespace}:{account}",
                               check=False).stdout.strip() == "yes"
    assert all(may("metastore-worker", verb, what) for what in ("pods", "configmaps", "services", "persistentvolumeclaims")
               for verb in ("create", "get", "list", "watch", "delete", "deletecollection"))
    assert not any(may("metastore-worker", verb, what) for verb, what in (
        ("get", "secrets"), ("create", "pods/exec"), ("patch", "deployments"), ("create", "rolebindings"), ("create", "serviceaccounts")))
    assert not any(may("metastore", verb, what) for verb, what in (("get", "pods"), ("get", "configmaps"), ("get", "secrets")))


SPARK = """
import json, sys
from pyspark import SparkConf, SparkContext
context = SparkContext(conf=SparkConf().setAppName("compaction").setAll(json.loads(sys.argv[1]).items()))
print("up", flush=True)
sys.stdin.read()
context.stop()
"""


def test_a_jobs_executors_are_pods_of_the_workers_making(cluster, tmp_path):
    """Spark itself asks, with the worker's token and nothing else: its pods are made where pods are restricted, and go with it."""
    namespace = cluster.namespace("jobs")
    cluster.run(BIN / "helm", "install", "metastore", CHART, "-n", namespace, "--no-hooks", "-f", CHART / "ci" / "closed.yaml")

    def found(*what):
        return json.loads(cluster.kubectl("get", *what, "-n", namespace, "-o", "json").stdout)

    worker = found("deployment/metastore-worker")["spec"]["template"]
    cluster.kubectl("apply", "-n", namespace, "-f", "-", given=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**worker["metadata"], "name": "worker-0"}, "spec": worker["spec"]}))
    (tmp_path / "executor.yaml").write_text(found("configmap/metastore")["data"]["executor.yaml"])
    [said] = [text.partition("spark.conf=")[2] for text in worker["spec"]["containers"][0]["args"] if "spark.conf=" in text]
    own = dict(pair.split("=", 1) for pair in said.replace("$(POD_IP)", "127.0.0.1").replace("$(POD_NAME)", "worker-0").split(","))
    del own["spark.jars.packages"]
    conf = {**own, "spark.master": f"k8s://{cluster.api}", "spark.kubernetes.trust.certificates": "true", "spark.ui.enabled": "false",
            "spark.kubernetes.executor.podTemplateFile": str(tmp_path / "executor.yaml"),
            "spark.kubernetes.authenticate.oauthToken": cluster.kubectl("create", "token", "metastore-worker", "-n", namespace).stdout.strip()}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", SPARK, json.dumps(conf)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                   env={name: value for name, value in cluster.environment.items() if name != "KUBECONFIG"}, text=True)
    try:
        assert process.stdout.readline() == "up\n", (tmp_path / "log").read_text()[-3000:]
        executors = ("pods", "-l", "spark-role=executor")
        wait_for(lambda: len(found(*executors)["items"]) == 4)
        for pod in found(*executors)["items"]:
            spec, [container] = pod["spec"], pod["spec"]["containers"]
            assert pod["metadata"]["ownerReferences"][0]["name"] == "worker-0"
            assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"
            assert (container["image"], container["args"]) == (f"transaction-metastore/worker:{__version__}", ["executor"])
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert spec["automountServiceAccountToken"] is False
            assert container["resources"]["requests"]["cpu"] == "2"
        process.stdin.close()
        assert process.wait(120) == 0
        wait_for(lambda: all("deletionTimestamp" in pod["metadata"] for pod in found(*executors)["items"]))
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()
    assert "orbidden" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("page", ["kubernetes.md", "sidecar.md"])
def test_the_commands_of_the_how_to(cluster, page):
    """But for the namespace, which is each command's own turn, and for the hooks."""
    namespace = cluster.namespace(f"how-to-{page.removesuffix('.md')}")
    for number, (_, verb, release, chart, *words) in enumerate(how_to.commands(page, "helm")):
        assert words[:2] == ["--namespace", "lake"]
        if verb == "install" and number:
            cluster.run(BIN / "helm", "uninstall", release, "--namespace", namespace, "--no-hooks")
        cluster.run(BIN / "helm", verb, release, ROOT / chart, "--namespace", namespace, "--no-hooks", *words[2:])
        template = cluster.kubectl("get", "configmap", "metastore-sidecar", "-n", namespace, "-o", r"jsonpath={.data.driver-pod-template\.yaml}",
                                   check=page == "sidecar.md").stdout
        assert ("restartPolicy: Always" in template) == (page == "sidecar.md")


@pytest.mark.parametrize("path", SIDECARS, ids=lambda path: path.stem)
def test_a_driver_with_a_sidecar_is_taken_where_pods_are_restricted(cluster, path):
    namespace = cluster.namespace(f"driver-{path.stem}")
    pod = yaml.safe_load(path.read_text())
    pod["metadata"]["name"] = "driver"
    pod["spec"]["containers"][0] |= {"image": "spark", "securityContext": {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True, "runAsUser": 185,
        "seccompProfile": {"type": "RuntimeDefault"}}}
    done = cluster.kubectl("apply", "--server-side", "--validate=strict", "-n", namespace, "-f", "-", given=json.dumps(pod))
    assert done.stderr == ""
