"""Lays out the image's file tree without a container runtime, measures it, and runs Pumice in it: `nox -s image`.

The tree is mounted read-only and entered as the image's user. Needs root on Debian 12; skipped elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from pumice import __version__
from tests.release.archives import ROOT, ReleaseError, run

MOST_MB: Final = 200.0
USER: Final = "10001"
LAY_OUT: Final = """\
set -eu
mount -t tmpfs tmpfs /opt   # the tree is made there, as in the image
sh {script} {root} {source} >/dev/null
"""
ENTER: Final = """\
set -eu
mount --bind {root} {root}
mount -o remount,ro,bind {root}
mount -t tmpfs tmpfs {root}/tmp
mount -t tmpfs -o uid={user} tmpfs {root}/journal
mount --rbind /dev {root}/dev
mount -t proc proc {root}/proc
exec env -i PATH=/opt/pumice/bin:/usr/sbin:/usr/bin LANG=C.UTF-8 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \\
    PUMICE_DB=/journal/pumice.db chroot --userspec={user}:{user} {root} /opt/pumice/bin/python -c '{program}'
"""
PROGRAM: Final = """\
import os, ssl, subprocess
assert os.getuid() == 10001
for place in ("/", "/opt/pumice", "/usr/lib/python3.11"):
    assert os.statvfs(place).f_flag & os.ST_RDONLY, place
assert not os.path.exists("/bin/sh") and not os.path.exists("/usr/bin/dpkg")
assert ssl.create_default_context().get_ca_certs()
assert not [name for name in os.listdir("/opt/pumice/lib/python3.11/site-packages") if name in ("pip", "setuptools")]
print(subprocess.check_output(["pumice", "--version"], text=True).strip())
subprocess.check_call(["pumice", "run", "--until", "idle"])
"""


def main() -> int:
    """Print what was measured; 1 when something is wrong."""
    if why := absent():
        print(f"the image is not laid out: {why}: SKIPPED")
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="pumice-image-") as folder:
            print(tried(Path(folder)))
    except ReleaseError as error:
        print(f"FAILED: {error}")
        return 1
    return 0


def absent() -> str:
    """Return what is missing here to lay out the tree; "" if nothing is."""
    if os.geteuid() != 0:
        return "it needs root"
    release = Path("/etc/os-release")
    if not release.exists() or "VERSION_CODENAME=bookworm" not in release.read_text("utf-8"):
        return "it needs Debian 12"
    return "" if Path("/usr/lib/python3.11/ensurepip").exists() else "it needs python3-venv"


def tried(folder: Path) -> str:
    """Return the size of the tree in which Pumice ran. Raises ReleaseError."""
    source, root = folder / "source", folder / "root"
    run("git", "clone", "-q", ROOT, source)
    in_own_mounts(LAY_OUT.format(script=source / "image" / "lay_out.sh", root=root, source=source))
    size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6
    if size > MOST_MB:
        raise ReleaseError(f"the image has {size:.0f} MB of files, at most {MOST_MB:.0f}")
    told = in_own_mounts(ENTER.format(root=root, user=USER, program=PROGRAM))
    if f"pumice {__version__}" not in told or "6 succeeded" not in told:
        raise ReleaseError(f"Pumice does not run in the image:\n{told}")
    return f"the image has {size:.0f} MB of files, and runs as user {USER} on a read-only root"


def in_own_mounts(script: str) -> str:
    """Run a script in a mount namespace of its own, and return what it prints. Raises ReleaseError."""
    command = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise ReleaseError(f"{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
