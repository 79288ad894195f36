"""What a process of the soak is: ``python -m tests.robustness.soak.roles ROLE URIS SEED DIRECTORY``.

It goes on until DIRECTORY/stop is there, and says then in DIRECTORY/ROLE.done that all it knows of is as it should be.
What is not as it should be goes into DIRECTORY/anomalies.
"""

import sys

from tests.robustness.soak.holder import Holder
from tests.robustness.soak.preparing import Preparing
from tests.robustness.soak.reader import Reader
from tests.robustness.soak.role import Role
from tests.robustness.soak.tables import WRITERS
from tests.robustness.soak.writer import Writer

ROLES: dict[str, type[Role]] = {**dict.fromkeys(WRITERS, Writer), "reader": Reader, "holder": Holder, "prepare": Preparing}

if __name__ == "__main__":
    role = ROLES[sys.argv[1]](*sys.argv[1:])
    role.begins()
    role.run()
    role.done()
