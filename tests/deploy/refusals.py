"""What the chart refuses to render, and why (`make deploy-check`; needs helm)."""

import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "transaction-metastore"
GOOD = ["database.existingSecret=d", "warehouse.uri=s3a://lake", "allowInsecure=true"]


def rendered(*values, drop=""):
    chosen = [one for one in (*GOOD, *values) if not drop or not one.startswith(drop)]
    return subprocess.run([ROOT / ".data" / "go" / "bin" / "helm", "template", "x", CHART, "--kube-version", "1.34.0", *(part for one in chosen for part in ("--set", one))],
                          check=False, capture_output=True, text=True)


def test_what_they_are_variations_of_is_rendered():
    assert rendered().returncode == 0


def manifest(kind, *values, drop=""):
    """Return the rendered manifests of a kind."""
    done = rendered(*values, drop=drop)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found and found["kind"] == kind]


def test_a_cluster_may_choose_the_user_and_a_probe_may_be_left_out():
    [server, _] = manifest("Deployment", "podSecurityContext.runAsUser=null", "podSecurityContext.fsGroup=null", "probes.startup=null")
    pod = server["spec"]["template"]["spec"]
    assert pod["securityContext"].keys() & {"runAsUser", "fsGroup", "runAsNonRoot"} == {"runAsNonRoot"}
    assert "startupProbe" not in pod["containers"][0]
    assert "livenessProbe" in pod["containers"][0]


@pytest.mark.parametrize(("values", "name", "label"), [
    ([], "x", "transaction-metastore"), (["nameOverride=hms"], "x-hms", "hms"), (["fullnameOverride=hms"], "hms", "transaction-metastore")])
def test_names(values, name, label):
    [service, _] = manifest("Service", *values)
    assert (service["metadata"]["name"], service["spec"]["selector"]["app.kubernetes.io/name"]) == (name, label)
    [server, worker] = manifest("Deployment", *values)
    assert service["spec"]["selector"].items() <= server["spec"]["template"]["metadata"]["labels"].items()
    assert f"--uri=thrift://{name}:9083" in worker["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_file_of_hive_as_it_is():
    text = "<configuration><property><name>hive.txn.timeout</name><value>600s</value></property></configuration>"
    [settings, _] = manifest("ConfigMap", f"configFile={text}")
    assert settings["data"]["hive-site.xml"].strip() == text
    before, after = (manifest("Deployment", *values)[0]["spec"]["template"] for values in ([f"configFile={text}"], [f"configFile={text} "]))
    assert before["metadata"]["annotations"]["checksum/settings"] != after["metadata"]["annotations"]["checksum/settings"]
    args = before["spec"]["containers"][0]["args"]
    assert args.index("--config=/etc/metastore/settings/hive-site.xml") < args.index("--config=/etc/metastore/settings/settings.yaml")


def test_probes_and_scrapers_speak_what_the_http_port_speaks():
    secure = ["tls.enabled=true", "tls.secretName=t", "metrics.serviceMonitor.enabled=true"]
    assert rendered(*secure).stdout.count("scheme: HTTPS") == 6
    assert "scheme: https" in rendered(*secure).stdout
    clear = rendered(*secure, "settings.metastore\\.http\\.use\\.SSL=false").stdout
    assert clear.count("scheme: HTTP}") == 6
    assert "scheme: https" not in clear


@pytest.mark.parametrize(("values", "drop", "sentence"), [
    ([], "database", "database.existingSecret"),
    (["postgres.enabled=true"], "database", "postgres.existingSecret"),
    ([], "warehouse", "warehouse.uri"),
    ([], "allowInsecure", "Clients need not prove who they are"),
    (["tls.enabled=true", "tls.clientCertificates=wanted", "tls.secretName=t"], "allowInsecure", "Clients need not prove who they are"),
    (["tls.enabled=true"], "", "tls.secretName"),
    (["server.enabled=false"], "", "workers.enabled"),
    (["sidecar.enabled=true", "sidecar.ownDatabase=true"], "", "sidecar.existingClaim"),
    (["settings.metastore\\.keystore\\.password=x"], "", "is a secret"),
    (["settings.metastore\\.database\\.url=postgresql://a:b@c/d"], "", "is a secret"),
    (["workers.sparkConf.spark\\.hadoop\\.fs\\.s3a\\.secret\\.key=x"], "", "is a secret"),
    (["database.host=db", "database.passwordSecret=p"], "", "there is one database"),
    (["postgres.enabled=true", "postgres.existingSecret=p"], "", "there is one database"),
    (["database.host=db"], "database.existing", "database.passwordSecret"),
    (["database.adminSecret=a"], "", "database.adminSecret"),
    (["existingConfigMap=a", "existingConfigSecret=b"], "", "come from one place"),
    (["configFile=<property><name>javax.jdo.option.ConnectionPassword</name> <value> x</value></property>"], "", "has a password"),
    (["configKeys[0]=hive-site.txt"], "", "configKeys"),
    (["s3.endpoint=s3:8333"], "", "s3.endpoint|s3/endpoint"),
    (["probes.start.periodSeconds=1"], "", "additional properties|Additional property"),
    (["workers.submit=yarn"], "", "workers.submit|workers/submit"),
    (["workers.threds=2"], "", "threds"),
])
def test_it_refuses(values, drop, sentence):
    done = rendered(*values, drop=drop)
    assert done.returncode != 0
    assert any(part in done.stderr for part in sentence.split("|")), done.stderr
