# SPDX-License-Identifier: Apache-2.0
"""Programs that are known, and how they read their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pumice.cluster.kube.commands.plans import FOR_EVER

NOT_FOUND: Final = 127
SHELLS: Final = ("sh", "bash", "ash", "dash")
QUIET: Final = {
    ":", "cat", "cd", "chmod", "chown", "cp", "curl", "date", "export", "getent", "hostname", "id", "ls", "mkdir",
    "mv", "nc", "nginx", "httpd", "nslookup", "nvidia-smi", "ping", "ps", "pwd", "rm", "sshd", "sync", "touch",
    "true", "umask", "uname", "unset", "wget", "whoami",
}  # fmt: skip
"""They end with 0 immediately. What they print depends on what an image holds, and is left out."""
WORK: Final = {
    "accelerate", "deepspeed", "horovodrun", "java", "julia", "jupyter", "make", "mpiexec", "mpirun", "node", "npm",
    "perl", "php", "python", "ruby", "spark-submit", "torchrun", "Rscript",
}  # fmt: skip
"""They do what their pod is there for: they take as long as it is said to run, and end with 0."""
STAYS: Final = {"tail": {"-f", "-F"}, "ray": {"--block"}}
"""Programs that run until they are stopped, and what asks them to."""
_SERVERS: Final = {
    "apache2-foreground", "caddy", "coredns", "envoy", "etcd", "grafana-server", "gunicorn", "haproxy", "http-echo",
    "httpd-foreground", "memcached", "mongod", "mysqld", "nats-server", "pause", "postgres", "prometheus",
    "rabbitmq-server", "redis-server", "tensorboard", "traefik", "uvicorn", "valkey-server",
}  # fmt: skip
_FOREGROUND: Final = {"nginx": "daemon off", "httpd": "-DFOREGROUND", "sshd": "-D"}
"""Servers that go to the background, where the container no longer waits for them, unless they are asked to stay."""

_SPAN: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(s|m|h|d)?", re.ASCII)
_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ECHOED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\([ntrabfv\\])")


def echoed(arguments: Sequence[str]) -> str:
    """Return the output of `echo`."""
    flags = 0
    while flags < len(arguments) and arguments[flags] in ("-n", "-e", "-ne", "-en", "-E"):
        flags += 1
    given, text = "".join(arguments[:flags]), " ".join(arguments[flags:])
    if "e" in given:
        # Without -e as bash has it; dash reads escapes always.
        text = _ESCAPE.sub(lambda match: _ECHOED[match[1]], text)
    return text if "n" in given else text + "\n"


def is_server(program: str, arguments: Sequence[str]) -> bool:
    """Return whether the program serves until it is asked to stop."""
    stays = _FOREGROUND.get(program)
    return program in _SERVERS or (stays is not None and any(stays in each for each in arguments))


def waits_for_input(arguments: Sequence[str]) -> bool:
    """Return whether the command is a shell without a script or a file."""
    program, *rest = arguments
    return program.rpartition("/")[2] in SHELLS and not any(
        has_flag(each, "c") or each[:1] not in ("-", "+") for each in rest
    )


def is_work(program: str) -> bool:
    """Return whether the program does the work of its pod."""
    # python3.11 is python.
    return program.rpartition("/")[2].rstrip("0123456789.") in WORK


def span_s(text: str) -> float | None:
    """Return seconds, as `sleep` reads them; None for an invalid argument."""
    if text in ("inf", "infinity"):
        return FOR_EVER
    match = _SPAN.fullmatch(text)
    return float(match[1]) * _UNITS_S[match[2] or "s"] if match is not None else None


def exit_code_of(text: str) -> int:
    """Return the code that `exit` reads in a text: the lowest eight bits."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit():
        return 2
    # The last 18 digits will do: 10 ** 18 is a multiple of 256, and int() of very long texts is an error.
    return int(text[-18:]) & 255 if digits is text else -int(digits[-18:]) & 255


def has_flag(word: str, flag: str) -> bool:
    """Return whether a word like `-ec` has the flag."""
    return word[:1] == "-" and not word.startswith("--") and flag in word[1:]
