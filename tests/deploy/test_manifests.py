"""What deploy/ says is what Kubernetes, systemd and our own command line understand.

The manifests in deploy/k8s are what helm makes of the chart's values; `make deploy-check` renders them again.
"""

import configparser
import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import click
import kubernetes_validate
import psycopg2
import pytest
import sqlalchemy
import yaml

from metastore.cli.main import cli
from metastore.config import build, hadoop_xml, sources
from metastore.config.security import exposure
from metastore.db import embedded
from metastore.telemetry.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "transaction-metastore"
RENDERED = sorted((DEPLOY / "k8s").glob("*.yaml"))
OTHERS_KINDS = {"Certificate", "PrometheusRule", "ServiceMonitor"}
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
    return [pytest.param(container, id=f"{path.stem}-{document['metadata']['name']}-{container['name']}") for path in RENDERED
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
            assert bool(exposed) == (path.stem not in {"closed", "company"})


@pytest.mark.parametrize("container", every_container())
def test_our_command_line_takes_the_arguments(container):
    if not re.match("transaction-metastore/", container["image"]):
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
    """Add Spark's fields to a pod template, validate the pod with Kubernetes' schema, and return it."""
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
    pod = whole_pod(yaml.safe_load(of_kind("closed", "ConfigMap", "metastore")["data"][file]))
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


def test_images_of_compose_are_pinned_and_healthy_before_others_start():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        assert service["image"].startswith("transaction-metastore/") or re.fullmatch(r"[\w/.-]+:\d[\w.-]*", service["image"]), name
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}, (name, needed)
            assert "healthcheck" in services[needed] or services[needed]["image"].startswith("transaction-metastore/"), needed


def test_the_store_of_compose_is_where_servers_look_and_its_inside_is_closed():
    """Its filer asks nobody for a password, so nothing but S3 may be reached from other containers."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    place, store = urlsplit(services["server-1"]["environment"]["AWS_ENDPOINT_URL"]), services["s3"]
    options = dict(option.removeprefix("-").partition("=")[::2] for option in store["command"][1:])
    assert (place.hostname, str(place.port)) == ("s3", options["s3.port"])
    assert (options["ip.bind"], options["s3.ip.bind"]) == ("127.0.0.1", "0.0.0.0")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert store["environment"][name] == services["server-1"]["environment"][name] == services["worker"]["environment"][name]
    assert "ports" not in store


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


def pods_of_company():
    """Return the pod templates of company.yaml by component, with the executor's, and the values of ci/company.yaml."""
    pods = {document["metadata"]["labels"]["app.kubernetes.io/component"]: document["spec"]["template"]
            for document in objects(DEPLOY / "k8s" / "company.yaml") if document["kind"] in {"Deployment", "Job"}}
    executor = of_kind("company", "ConfigMap", "hive-metastore")["data"]["executor.yaml"]
    return {**pods, "executor": yaml.safe_load(executor)}, yaml.safe_load((CHART / "ci" / "company.yaml").read_text())


PLACEMENT = ("nodeSelector", "affinity", "tolerations", "priorityClassName")


def test_pods_stand_where_the_values_say():
    pods, values = pods_of_company()
    for component in ("server", "worker", "executor", "migrate", "database"):
        assert {name: pods[component]["spec"].get(name) for name in PLACEMENT} == {name: values["server"][name] for name in PLACEMENT}, component
    for component in ("server", "worker"):
        assert pods[component]["spec"]["topologySpreadConstraints"] == values["server"]["topologySpreadConstraints"]
        assert values["server"]["podLabels"].items() <= pods[component]["metadata"]["labels"].items()
        assert values["server"]["podAnnotations"].items() <= pods[component]["metadata"]["annotations"].items()


def test_pods_get_what_the_values_add():
    pods, values = pods_of_company()
    for component in ("server", "worker", "executor", "migrate"):
        [*_, container] = [each for each in pods[component]["spec"]["containers"] if each["name"] == component]
        assert all(variable in container["env"] for variable in values["extraEnv"]), component
        assert all(mount in container["volumeMounts"] for mount in values["extraVolumeMounts"]), component
        assert all(volume in pods[component]["spec"]["volumes"] for volume in values["extraVolumes"]), component
        assert pods[component]["spec"]["securityContext"]["supplementalGroups"] == [2000]
        assert pods[component]["spec"]["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["procMount"] == "Default"
    for component in ("server", "worker"):
        assert pods[component]["spec"]["initContainers"] == values["server"]["initContainers"]
        assert pods[component]["spec"]["containers"][1:] == values["server"]["extraContainers"]
        probe = pods[component]["spec"]["containers"][0]["livenessProbe"]
        assert (probe["failureThreshold"], probe["periodSeconds"], probe["httpGet"]["path"]) == (12, 10, "/livez")


def test_names_are_the_companys():
    documents = objects(DEPLOY / "k8s" / "company.yaml")
    assert {document["metadata"]["name"].partition("-server")[0].partition("-worker")[0] for document in documents} == {
        "hive-metastore", "hive-metastore-migrate", "hive-metastore-database", "hive-metastore-discovery"}
    assert {document["metadata"]["labels"]["app.kubernetes.io/name"] for document in documents} == {"hive-metastore"}
    assert "--uri=thrift://hive-metastore:9083" in containers(of_kind("company", "Deployment", "hive-metastore-worker"))[1]["args"]


@pytest.mark.parametrize("component", ["server", "worker"])
def test_files_of_hive_are_read_before_the_charts_own_settings(component):
    """Check that the chart's settings win, so that ports and places are those of the Service and of the volumes."""
    pods, values = pods_of_company()
    pod = pods[component]["spec"]
    args = pod["containers"][0]["args"]
    files = [argument.removeprefix("--config=") for argument in args if argument.startswith("--config=")]
    assert files == [*(f"/etc/metastore/hive/{name}" for name in values["configKeys"]), "/etc/metastore/settings/settings.yaml"]
    assert {"name": "hive", "mountPath": "/etc/metastore/hive", "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert {"name": "hive", "secret": {"secretName": "hive-site"}} in pod["volumes"]


def environment_of(container):
    return {variable["name"]: variable.get("value", variable.get("valueFrom", {}).get("secretKeyRef")) for variable in container["env"]}


@pytest.mark.parametrize("component", ["server", "worker", "migrate"])
def test_the_database_by_its_parts_is_one_that_our_settings_take(component):
    pods, _ = pods_of_company()
    found = environment_of(pods[component]["spec"]["containers"][0])
    assert found["METASTORE_CONF_METASTORE_DATABASE_PASSWORD"] == {"name": "metastore-database", "key": "password"}
    given = {name: text for name, text in found.items() if name.startswith("METASTORE_CONF_") and isinstance(text, str)}
    settings = build([sources.environment({**given, "METASTORE_CONF_METASTORE_DATABASE_PASSWORD": "it's"})]).database
    assert psycopg2.extensions.parse_dsn(settings.full_url) == {
        "user": "metastore", "password": "it's", "host": "db.databases.svc", "port": "5432", "dbname": "metastore", "sslmode": "verify-full"}


@pytest.fixture
def administrator(postgres):
    """Yield a role that may create databases and roles but is no superuser, as in a managed PostgreSQL."""
    postgres.sql("CREATE ROLE administrator LOGIN CREATEDB CREATEROLE")
    yield "administrator"
    postgres.sql('DROP DATABASE IF EXISTS "the ""lake"""')
    postgres.sql("DROP OWNED BY administrator; DROP ROLE IF EXISTS \"o'neil\"; DROP ROLE administrator")


@pytest.mark.parametrize("is_superuser", [False, True])
def test_the_job_makes_database_and_role_once(postgres, administrator, is_superuser):
    """Any number of times, with names and passwords that have quotes in them."""
    pods, _ = pods_of_company()
    [container] = pods["database"]["spec"]["containers"]
    assert {name: text for name, text in environment_of(container).items() if isinstance(text, dict)} == {
        "PGUSER": {"name": "postgres-admin", "key": "user"}, "PGPASSWORD": {"name": "postgres-admin", "key": "password"},
        "METASTORE_PASSWORD": {"name": "metastore-database", "key": "password"}}
    assert container["command"][:2] == ["sh", "-ec"]
    url = sqlalchemy.make_url(postgres.url("postgres"))
    environment = {"PGHOST": url.query["host"], "PGPORT": url.query["port"], "PGUSER": url.username if is_superuser else administrator, "PGDATABASE": "postgres",
                   "METASTORE_DATABASE": 'the "lake"', "METASTORE_USER": "o'neil", "PATH": f"{embedded.programs()}:{os.environ['PATH']}"}
    for password in ("first ' one", "second"):
        done = subprocess.run(container["command"], check=False, capture_output=True, text=True, env={**environment, "METASTORE_PASSWORD": password})
        assert done.returncode == 0, done.stderr
        assert password not in done.stdout + done.stderr

    assert postgres.sql("SELECT rolcanlogin, rolsuper, rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = 'o''neil'") == [(True, False, True)]
    assert postgres.sql("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'the \"lake\"'") == [("o'neil",)]
    if is_superuser:
        postgres.sql('DROP DATABASE "the ""lake"""')


def test_s3_is_reached_by_servers_jobs_and_executors():
    pods, _ = pods_of_company()
    for component in ("server", "worker", "executor"):
        found = environment_of(pods[component]["spec"]["containers"][0])
        assert {name: text for name, text in found.items() if name.startswith("AWS_")} == {
            "AWS_ENDPOINT_URL": "https://s3.lake.svc:8333", "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": {"name": "lake-s3", "key": "accessKey"}, "AWS_SECRET_ACCESS_KEY": {"name": "lake-s3", "key": "secretKey"}}, component
    [conf] = [argument.removeprefix("--set=") for argument in pods["worker"]["spec"]["containers"][0]["args"] if "spark.conf=" in argument]
    assert {"spark.hadoop.fs.s3a.endpoint": "https://s3.lake.svc:8333", "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1",
            "spark.hadoop.fs.s3a.path.style.access": "true"}.items() <= dict(
                pair.split("=", 1) for pair in build([sources.command_line((conf,))]).compaction.spark_conf).items()


def test_clients_discover_the_address():
    """HIVE is what Stackable's operators read; hive-site.xml is for Hive's and Spark's clients."""
    data = of_kind("company", "ConfigMap", "hive-metastore-discovery")["data"]
    properties = hadoop_xml.read(data["hive-site.xml"].encode(), Path("hive-site.xml"))
    assert data["HIVE"] == "thrift://hive-metastore.lake.svc.cluster.local:9083"
    assert properties == {"hive.metastore.uris": data["HIVE"], "hive.metastore.use.SSL": "true"}
