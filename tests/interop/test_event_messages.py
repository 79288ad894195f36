"""Messages of events before the deserializer of Hive 2.3.10, out of PySpark's jars; `make interop` has the later ones."""

from tests.interop.clients import event_messages
from tests.interop.clients.sessions import ran


def test_hives_deserializer_reads_every_message(client, tmp_path):
    """Its keys, and each object as it was written."""
    told, lines = event_messages.requested(client, tmp_path)
    done = ran("2.3.10", "", "Events", event_messages.DESERIALIZER, str(lines))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    event_messages.require_read("2.3.10", told, done.stdout)
