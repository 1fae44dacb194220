"""The release as a newcomer gets it: archives built twice, looked into, installed in empty environments and used.

`nox -s release`, or `python -m tests.release`, which leaves the archives in `dist/`.
"""
