# SPDX-License-Identifier: Apache-2.0
"""Names, labels and identities: what Kubernetes allows (apimachinery's `validation`), and how Pumice makes its own.

Uids and generated suffixes are hashes of the store's seed and revision, so the same inputs give the same names.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from pumice.core.texts import remembers

# Matched with `fullmatch`: Python's `$` would let a line end behind the name pass.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' own: no vowels, so no words
_EMPTY: Final = blake2b(digest_size=16)  # a copy of it costs less than another one
_GENERATED_BASE: Final = 58  # generateName is cut to this, so that the whole stays a DNS label

_NOT_IN_PATHS: Final = ("/", "%")
# The names of RBAC hold colons, like `system:node` (`pkg/apis/rbac/validation`).
_PATH_NAMES: Final = frozenset(
    ("APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_OLD_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


# the same names come again with each pod of a job: remembered ones cost no regular expression
@remembers(4096)
def label_problem(text: str) -> str | None:
    """Return why `text` is not a valid DNS label (63 characters), or None."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    return None if _LABEL.fullmatch(text) else _LABEL_RULE


@remembers(4096)
def old_label_problem(text: str) -> str | None:
    """Return why `text` is not a DNS label of RFC 1035, which begins with a letter; None for a valid one."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    return None if _LABEL.fullmatch(text) and text[0].isalpha() else _OLD_LABEL_RULE


@remembers(4096)
def subdomain_problem(text: str) -> str | None:
    """Return why `text` is not a valid DNS subdomain (253 characters), or None: the rule for most object names."""
    if len(text) > 253:
        return "must be no more than 253 bytes"
    return None if _SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_RULE


def path_segment_problem(text: str) -> str | None:
    """Return why `text` cannot be a part of a URL's path, None where it can: the rule for names that hold `:`."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    return next((f"may not contain '{each}'" for each in _NOT_IN_PATHS if each in text), None)


def name_problem(kind: str, text: str) -> str | None:
    """Return why an object of a kind, by its key, cannot have this name; None for a valid one.

    Source: validation in Kubernetes' `pkg/apis`. Services, Namespaces and StatefulSets have stricter rules besides.
    """
    if kind in _PATH_NAMES:
        return path_segment_problem(text)
    return subdomain_problem(text)


@remembers(4096)
def qualified_name_problem(text: str) -> str | None:
    """Return why `text` is not a valid qualified name (`prefix/name`), or None: for label and annotation keys, and
    resources.
    """
    prefix, slash, name = text.rpartition("/")
    if slash and (problem := subdomain_problem(prefix)):
        return f"prefix part {problem}"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return None if _QUALIFIED.fullmatch(name) else f"name part {_QUALIFIED_RULE}"


@remembers(4096)
def annotation_key_problem(text: str) -> str | None:
    """Return why `text` is not a valid annotation key, or None: a qualified name in which capitals count as small
    letters.
    """
    return qualified_name_problem(text.lower())


@remembers(16384)
def label_value_problem(text: str) -> str | None:
    """Return why `text` is not a valid label value, or None; the empty value is valid."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    return None if not text or _QUALIFIED.fullmatch(text) else f"a valid label {_QUALIFIED_RULE}"


def uid_of(seed: int, revision: int, attempt: int = 0) -> str:
    """Return a uid in the shape of a UUID: a hash of the store's seed and the revision that created the object.

    `attempt`: another one, where an object that came with its uid has that one.
    """
    hashed = _EMPTY.copy()
    hashed.update(b"uid %d %d %d" % (seed, revision, attempt) if attempt else b"uid %d %d" % (seed, revision))
    digest = hashed.hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def generated_name(base: str, seed: int, revision: int, attempt: int) -> str:
    """Return `base` and five letters, another five for every attempt (Kubernetes' generateName)."""
    number = int.from_bytes(blake2b(b"name %d %d %d" % (seed, revision, attempt), digest_size=8).digest())
    letters: list[str] = []
    for _ in range(5):
        number, rest = divmod(number, len(_SUFFIX_LETTERS))
        letters.append(_SUFFIX_LETTERS[rest])
    return base[:_GENERATED_BASE] + "".join(letters)
