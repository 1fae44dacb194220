# SPDX-License-Identifier: Apache-2.0
"""ControllerRevisions: the earlier templates of an owner, which identify its pods (source: Kubernetes'
`controller/history`).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from msgspec import to_builtins

from pumice.cluster.controllers.pods_of import reference
from pumice.core.messages.commands import ApiRequest, Delete, Patch
from pumice.core.objects.metadata import Object, labels_of, section, text_map
from pumice.storage.codec import pack

KIND: Final = "ControllerRevision"
HASH: Final = "controller.kubernetes.io/hash"
POD_HASH: Final = "controller-revision-hash"
"""The label of a pod that says which template it is of; a DaemonSet's revisions have it, too."""
DEFAULT_LIMIT: Final = 10


@dataclass(frozen=True, slots=True)
class TemplateRevisions:
    """The revision of an owner's present template, and the request that creates it.

    `new`: it does not exist yet.
    """

    update: Object
    new: Object | None
    requests: tuple[ApiRequest, ...] = ()


def revisions_of(owner: Object, known: Sequence[Object], user: str) -> TemplateRevisions:
    """Return the revisions of an owner; an earlier template gets its revision back, as the newest."""
    data = data_of(owner["spec"]["template"])
    newest = max([each.get("revision") or 0 for each in known], default=0)
    for each in known:
        if each.get("data") != data:
            continue
        if (each.get("revision") or 0) == newest:
            return TemplateRevisions(each, None)
        meta = each["metadata"]
        # A rollback: the old revision becomes the newest, so that its pods keep their hash and are not replaced.
        again = Patch(KIND, meta["namespace"], meta["name"], pack({"revision": newest + 1}), user=user)
        return TemplateRevisions(each, None, (again,))
    made = _revision(owner, data, newest + 1)
    return TemplateRevisions(made, made)


def data_of(template: Object) -> Object:
    """Return a strategic patch that puts the template back, with sorted names, as clients in Go compare its text."""
    # `$patch: replace`, or applying the revision would merge into the present template and keep fields that went since.
    ordered: Object = to_builtins({"spec": {"template": {**template, "$patch": "replace"}}}, order="sorted")
    return ordered


def template_of(revision: Object) -> Object:
    """Return the template of a revision."""
    template = section(section(revision["data"], "spec"), "template")
    return {name: value for name, value in template.items() if name != "$patch"}


def hash_of(revision: Object) -> str:
    """Return the hash that tells a revision from the owner's other revisions."""
    labels = text_map(revision["metadata"].get("labels"))
    return labels.get(HASH) or labels.get(POD_HASH, "")


def outdated(owner: Object, known: Sequence[Object], used: Container[str], user: str) -> list[Delete]:
    """Yield deletions of the oldest revisions without pods, beyond the number to keep."""
    limit: int = owner["spec"].get("revisionHistoryLimit", DEFAULT_LIMIT)
    idle = [each for each in known if each["metadata"]["name"] not in used]
    idle.sort(key=lambda each: each.get("revision") or 0)
    gone = [each["metadata"] for each in idle[: max(len(idle) - limit, 0)]]
    return [Delete(KIND, meta["namespace"], meta["name"], uid=meta["uid"], user=user) for meta in gone]


def taking_over(revision: Object, user: str) -> Patch:
    """Give an existing revision to its new owner, which may have pods already."""
    meta = revision["metadata"]
    patch = {"metadata": {"ownerReferences": meta["ownerReferences"]}}
    return Patch(KIND, meta["namespace"], meta["name"], pack(patch), user=user)


def _revision(owner: Object, data: Object, number: int) -> Object:
    meta = owner["metadata"]
    mark = blake2b(pack([owner["kind"], data]), digest_size=5).hexdigest()
    template = section(owner["spec"], "template")
    label = POD_HASH if owner["kind"] == "DaemonSet" else HASH
    labels = {**labels_of(template), label: mark}
    return {
        "apiVersion": "apps/v1",
        "kind": KIND,
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": dict(text_map(meta.get("annotations"))),
            "ownerReferences": [reference(owner)],
        },
        "data": data,
        "revision": number,
    }
