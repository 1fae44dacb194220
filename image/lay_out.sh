#!/bin/sh
# Lays out the file tree of the image: `image/lay_out.sh ROOT SOURCE`, on Debian 12 with python3-venv, as root.
# The tree holds Python, the libraries that it loads, certificates, and Pumice: no shell, no package manager, no pip.
set -eu
root=$1
source=$(realpath "$2")

# What python3.11 and the wheels load; Debian's dpkg keeps the names, so that scanners know what is in the image.
packages="
    base-files ca-certificates libbz2-1.0 libc6 libcrypt1 libexpat1 libffi8 libgcc-s1 liblzma5 libpython3.11-minimal
    libpython3.11-stdlib libsqlite3-0 libssl3 libstdc++6 libuuid1 netbase python3.11-minimal zlib1g"

mkdir -p "$root/var/lib/dpkg/status.d" "$root/tmp" "$root/journal" "$root/opt" "$root/etc/ssl/certs"
archives=$(mktemp -d)
chmod 755 "$archives"
cd "$archives"
# shellcheck disable=SC2086 # one word a package
apt-get -q download $packages
for archive in ./*.deb; do
    dpkg-deb -x "$archive" "$root"
    dpkg-deb -f "$archive" >"$root/var/lib/dpkg/status.d/$(dpkg-deb -f "$archive" Package)"
done
cd /
cat /usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"

/usr/bin/python3.11 -m venv --without-pip /opt/pumice
/usr/bin/python3.11 -m venv "$archives/pip"
"$archives/pip/bin/pip" -q --python /opt/pumice install --no-cache-dir --only-binary :all: --no-compile "$source"
# Tests of libraries are never run from an image; 14 MB of numpy are such.
find /opt/pumice -type d -name tests -prune -exec rm -rf {} +
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/usr/share/ca-certificates" \
    "$root/usr/lib/python3.11/ensurepip" "$root/usr/lib/python3.11/test" "$root/usr/lib/python3.11/lib2to3" "$archives"
cp -a /opt/pumice "$root/opt/pumice"
# The root is read-only when it runs, so nothing could be compiled then.
/usr/bin/python3.11 -m compileall -q -j 1 --invalidation-mode unchecked-hash -s "$root" "$root/opt/pumice" "$root/usr/lib/python3.11" || true

echo "pumice:x:10001:10001::/journal:/nologin" >"$root/etc/passwd"
echo "pumice:x:10001:" >"$root/etc/group"
chown 10001:10001 "$root/journal"
chmod 1777 "$root/tmp"
