"""What deploy/ says is what Kubernetes, systemd and our own command line understand.

The manifests in deploy/k8s are what helm makes of the chart's values; `make deploy-check` renders them again.
"""

import configparser
import json
import os
import re
import subprocess
from pathlib import Path

import click
import kubernetes_validate
import pytest
import yaml

from metastore.cli.main import cli
from metastore.config import build, sources
from metastore.config.security import exposure
from metastore.telemetry.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "transaction-metastore"
RENDERED = sorted((DEPLOY / "k8s").glob("*.yaml"))
OTHERS_KINDS = {"Certificate", "ServiceMonitor"}
OLDEST, NEWEST = "1.29", "1.34"


def objects(path):
    return [found for found in yaml.safe_load_all(path.read_text()) if found]


def containers(document):
    """Every container in a manifest, also sidecars in a pod template that is text."""
    if document["kind"] == "ConfigMap":
        texts = [yaml.safe_load(text) for name, text in document["data"].items() if name.endswith("template.yaml")]
        return [container for pod in texts for container in pod["spec"]["initContainers"]]
    pod = document.get("spec", {}).get("template", {}).get("spec", {})
    return [*pod.get("initContainers", []), *pod.get("containers", [])]


def every_container():
    return [pytest.param(container, id=f"{path.stem}-{document['metadata']['name']}") for path in RENDERED
            for document in objects(path) for container in containers(document)]


def test_each_set_of_values_is_rendered():
    assert [path.name for path in RENDERED] == sorted(path.name for path in (CHART / "ci").glob("*.yaml"))


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_kubernetes_knows_every_field(path, version):
    for document in objects(path):
        if document["kind"] not in OTHERS_KINDS:
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_our_server_takes_the_settings(path):
    for document in objects(path):
        if document["kind"] == "ConfigMap" and "settings.yaml" in document["data"]:
            settings = build([sources.SettingsSource("chart", dict(sources._yaml(document["data"]["settings.yaml"].encode(), path)))])
            exposed = exposure(settings.server.host, settings.tls, settings.identity)  # raises if the server would not start
            assert bool(exposed) == (path.stem != "closed")


@pytest.mark.parametrize("container", every_container())
def test_our_command_line_takes_the_arguments(container):
    if container["name"] == "postgres":
        return
    command, arguments = cli, list(container["args"])
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), arguments.pop(0))
    command.make_context("metastore", arguments, help_option_names=["-h", "--help"])


@pytest.mark.parametrize("container", every_container())
def test_containers_have_no_rights(container):
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in container["resources"]["requests"]


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_no_secret_is_in_the_clear(path):
    for document in objects(path):
        assert document["kind"] != "Secret"
        for container in containers(document):
            for variable in container.get("env", []):
                if re.search(r"password|secret|_key", variable["name"], re.IGNORECASE):
                    assert "value" not in variable, variable["name"]
        assert not re.search(r"://[^/\s]*:[^/\s]*@", yaml.safe_dump(document))
        for key in re.findall(r"^\s*([\w.]*(?:password|secret)[\w.]*): \S+$", yaml.safe_dump(document.get("data", {})), re.MULTILINE):
            raise AssertionError(f"{key} is in a ConfigMap")


def test_values_are_those_of_the_schema():
    def compare(values, schema, place):
        if isinstance(values, dict) and "properties" in schema:
            assert values.keys() == schema["properties"].keys() - {"global"}, place
            for name, value in values.items():
                compare(value, schema["properties"][name], f"{place}.{name}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text()), json.loads((CHART / "values.schema.json").read_text()), "")


def whole_pod(template, **container):
    """A pod template with what Spark adds, judged by Kubernetes' schema."""
    [own] = template["spec"]["containers"]
    pod = {**template, "metadata": {"name": "pod", **template["metadata"]},
           "spec": {**template["spec"], "containers": [{"image": "spark", **own, **container}]}}
    kubernetes_validate.validate(pod, NEWEST, strict=True)
    return pod


SIDECARS = sorted((DEPLOY / "sidecar").glob("*.yaml"))


@pytest.mark.parametrize("path", SIDECARS, ids=lambda path: path.stem)
def test_a_sidecar_starts_before_the_driver_and_stops_after_it(path):
    template = yaml.safe_load(path.read_text())
    [sidecar] = whole_pod(template)["spec"]["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert "--host=127.0.0.1" in sidecar["args"]
    assert f"--ready-file={sidecar['startupProbe']['exec']['command'][-1]}" in sidecar["args"]


def test_sidecars_are_plain_manifests_too():
    templates = {path.name: document["data"]["driver-pod-template.yaml"] for path in RENDERED for document in objects(path)
                 if "driver-pod-template.yaml" in document.get("data", {})}
    assert {path.name: path.read_text() for path in SIDECARS} == {
        name: text.rstrip() + "\n" for name, text in templates.items()}
    assert len(SIDECARS) == 2


def of_kind(shape, kind, name=None):
    [found] = [document for document in objects(DEPLOY / "k8s" / f"{shape}.yaml")
               if document["kind"] == kind and name in (None, document["metadata"]["name"])]
    return found


def test_executors_are_pods_of_the_cluster_without_rights_of_their_own():
    """Their driver is the worker's pod: they get its address, may reach it, and go with it."""
    [worker] = containers(of_kind("closed", "Deployment", "metastore-worker"))
    assignments = tuple(text.removeprefix("--set=") for text in worker["args"] if text.startswith("--set="))
    settings = build([sources.command_line(assignments)]).compaction
    conf = dict(pair.split("=", 1) for pair in settings.spark_conf)
    assert (settings.submit, settings.spark_master) == ("spark-submit", "k8s://https://kubernetes.default.svc")
    assert (conf["spark.driver.host"], conf["spark.kubernetes.driver.pod.name"]) == ("$(POD_IP)", "$(POD_NAME)")
    assert {"POD_IP", "POD_NAME"} <= {variable["name"] for variable in worker["env"]}
    assert conf["spark.kubernetes.container.image"] == worker["image"]
    assert conf["spark.kubernetes.namespace"] == "lake"

    folder, _, file = conf["spark.kubernetes.executor.podTemplateFile"].rpartition("/")
    assert {"name": "settings", "mountPath": folder, "readOnly": True} in worker["volumeMounts"]
    pod = whole_pod(yaml.safe_load(of_kind("closed", "ConfigMap")["data"][file]))
    assert pod["spec"]["automountServiceAccountToken"] is False
    [executor] = pod["spec"]["containers"]
    assert executor["name"] == conf["spark.kubernetes.executor.podTemplateContainerName"]
    assert executor["securityContext"]["readOnlyRootFilesystem"] is True
    [to_driver] = [rule["from"] for rule in of_kind("closed", "NetworkPolicy", "metastore-worker")["spec"]["ingress"] if "ports" not in rule]
    assert to_driver == [{"podSelector": {"matchLabels": pod["metadata"]["labels"]}}]


def test_workers_are_scaled_by_metrics_that_there_are():
    there = {sample.name for family in Metrics("1").registry.collect() for sample in family.samples}
    asked = {metric["external"]["metric"]["name"] for metric in of_kind("production", "HorizontalPodAutoscaler")["spec"]["metrics"]}
    assert asked == {"metastore_compactions_waiting", "metastore_compactions_working"}
    assert asked <= there


def test_prometheus_reads_servers_and_workers():
    monitor = of_kind("production", "ServiceMonitor")["spec"]
    [endpoint] = monitor["endpoints"]
    read = [document["metadata"]["name"] for document in objects(DEPLOY / "k8s" / "production.yaml") if document["kind"] == "Service"
            and monitor["selector"]["matchLabels"].items() <= document["metadata"]["labels"].items()
            and endpoint["port"] in {port["name"] for port in document["spec"]["ports"]}]
    assert read == ["metastore", "metastore-worker"]
    assert endpoint["tlsConfig"]["serverName"] in of_kind("production", "Certificate")["spec"]["dnsNames"]


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_start_what_there_is(unit):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(unit)
    _, *arguments = parser["Service"]["ExecStart"].split()
    command = cli.get_command(click.Context(cli), arguments.pop(0))
    command.make_context("metastore", arguments, help_option_names=["-h", "--help"])
    assert parser["Service"]["ProtectSystem"] == "strict"


def test_compose_starts_what_there_is():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("server-1", "server-2", "worker"):
        arguments = list(services[name]["command"])
        command = cli.get_command(click.Context(cli), arguments.pop(0))
        command.make_context("metastore", arguments, help_option_names=["-h", "--help"])
        values = {key: re.sub(r"\$\{[^}]*\}", "x", text) for key, text in services[name]["environment"].items()}
        settings = build([sources.environment(values)])
        assert exposure(settings.server.host, settings.tls, settings.identity)
    # A worker leaves the schema to the servers, and ends where there is none.
    assert services["worker"]["depends_on"] == {"server-1": {"condition": "service_healthy"}}
    assert {port.rpartition(":")[0].rpartition(":")[0] for service in services.values() for port in service.get("ports", [])} == {"127.0.0.1"}


@pytest.mark.parametrize("image", ["server", "worker"])
def test_images_run_as_nobody_in_particular(image):
    lines = (DEPLOY / "images" / f"{image}.Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    assert f"RUN bash /source/deploy/images/build.sh /source /opt/metastore {image}" in lines


def test_the_build_refuses_other_kinds(tmp_path):
    done = subprocess.run(["bash", str(DEPLOY / "images" / "build.sh"), str(tmp_path), str(tmp_path / "out"), "everything"],
                          check=False, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, "neither server nor worker" in done.stderr) == (2, True)


def test_jobs_reach_only_what_the_values_name():
    """Names, the release's own pods, and what the operator lists."""
    policy = of_kind("production", "NetworkPolicy", "metastore-jobs")["spec"]
    assert policy["policyTypes"] == ["Egress"]
    [selected] = policy["podSelector"]["matchExpressions"]
    assert selected == {"key": "app.kubernetes.io/component", "operator": "In", "values": ["worker", "executor"]}
    names, own, *listed = policy["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    assert own == {"to": [{"podSelector": {"matchLabels": policy["podSelector"]["matchLabels"]}}]}
    values = yaml.safe_load((CHART / "ci" / "production.yaml").read_text())
    assert listed == values["networkPolicy"]["egress"]
