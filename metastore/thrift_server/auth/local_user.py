"""The owner of the process at the other end of a connection from this machine.

Rule: the kernel names the owner (``/proc/net/tcp``), not the client. If it does not, the owner is unknown.
"""

import grp
import os
import pwd
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from metastore.thrift_server.auth.identity import NOBODY, Identity, IdentityProof

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
_STEP = -1 if sys.byteorder == "little" else 1  # The words of an address are printed in the machine's byte order.


def of_own_user(address: str) -> Identity:
    """Return the server's own user for a process of that user at an address; else `NOBODY`."""
    if not is_own_user_at(address):
        return NOBODY
    return Identity(pwd.getpwuid(os.geteuid()).pw_name, IdentityProof.KERNEL)


def groups_of(user: str) -> frozenset[str]:
    """Return the groups of a user, as this machine knows them; none for an unknown user."""
    try:
        known = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
        return frozenset(grp.getgrgid(group).gr_name for group in known)
    except KeyError:
        return frozenset()


def is_own_user_at(address: str) -> bool:
    """Return True if an address, ``host:port``, is this machine's and only this process's user has sockets there."""
    host, _, port = address.rpartition(":")
    try:
        wanted = _plain(host.strip("[]"))
        number = int(port)
    except ValueError:
        return False
    owners = {owner for local, owner in _sockets() if local == (wanted, number)}
    return owners == {os.geteuid()}


def _sockets() -> Iterator[tuple[tuple[IPv4Address | IPv6Address, int], int]]:
    """Yield the local address and the owner of each connection of this machine."""
    for table in _TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, _, _, _, owner, *_ = line.split()
            if state == _ESTABLISHED:
                host, _, port = local.partition(":")
                words = bytes.fromhex(host)
                packed = b"".join(words[at : at + 4][::_STEP] for at in range(0, len(words), 4))
                yield (_plain(packed), int(port, 16)), int(owner)


def _plain(host: str | bytes) -> IPv4Address | IPv6Address:
    address = ip_address(host)
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
