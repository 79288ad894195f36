"""What the chart refuses to render, and why (`make deploy-check`; needs helm)."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "transaction-metastore"
GOOD = ["database.existingSecret=d", "warehouse.uri=s3a://lake", "allowInsecure=true"]


def rendered(*values, drop=""):
    chosen = [one for one in (*GOOD, *values) if not drop or not one.startswith(drop)]
    return subprocess.run([ROOT / ".data" / "go" / "bin" / "helm", "template", "x", CHART, "--kube-version", "1.34.0", *(part for one in chosen for part in ("--set", one))],
                          check=False, capture_output=True, text=True)


def test_what_they_are_variations_of_is_rendered():
    assert rendered().returncode == 0


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
    (["workers.submit=yarn"], "", "workers.submit|workers/submit"),
    (["workers.threds=2"], "", "threds"),
])
def test_it_refuses(values, drop, sentence):
    done = rendered(*values, drop=drop)
    assert done.returncode != 0
    assert any(part in done.stderr for part in sentence.split("|")), done.stderr
