"""What a process says of itself over HTTP."""

import json
import urllib.error
import urllib.request


def readyz(http_uri, **how):
    """Return the answer of /readyz, whether it is yes or no; a probe that is slow for once makes it a no."""
    try:
        with urllib.request.urlopen(f"{http_uri}/readyz", **how) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)
