"""Between two one-shot cycles the claims of pods that are being bound get what they were promised, at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.cluster.kernel.pre_bind import Place, PreBindError, claim_place, writes_of
from pumice.core.kube.storage import class_name, is_fully_bound
from pumice.core.kube.volume_writes import bound_claim, bound_volume, made_volume
from pumice.core.messages.decisions import Bind
from pumice.core.objects.metadata import Object, section


def with_claims_met(objects: Sequence[Object], binds: Iterable[Bind]) -> tuple[list[Object], set[str]]:
    """The objects with volumes bound, volumes made and devices given; and uids of pods for which that failed.

    What is made comes last. The given objects are not changed.
    """
    needing = [bind for bind in binds if bind.pre_bind is not None and bind.pre_bind.writes]
    if not needing:
        return list(objects), set()
    now: dict[Place, Object] = {_place(obj): obj for obj in objects}
    failed: set[str] = set()
    for bind in needing:
        try:
            now.update(_met(bind, now))
        except (PreBindError, KeyError):
            failed.add(bind.uid)
    return list(now.values()), failed


def _place(obj: Object) -> Place:
    metadata = section(obj, "metadata")
    return obj["kind"], str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _met(bind: Bind, before: dict[Place, Object]) -> dict[Place, Object]:
    """What changes. Raises PreBindError for what is not possible, KeyError for an object that is not there."""
    changed: dict[Place, Object] = {}
    for write in writes_of(bind):
        obj = changed.get(write.place, before[write.place])
        after = write.do(obj, before[write.beside or write.place])
        changed[write.place] = obj if after is None else after
    assert bind.pre_bind is not None
    for name, key in bind.pre_bind.volumes:
        volume, claim = ("PersistentVolume", "", name), claim_place(key)
        changed[volume] = bound_volume(changed[volume], before[claim])
        changed[claim] = bound_claim(changed.get(claim, before[claim]), changed[volume])
    for key in bind.pre_bind.provisions:
        claim = claim_place(key)
        if not is_fully_bound(changed[claim]):
            made = made_volume(changed[claim], before["StorageClass", "", class_name(changed[claim])])
            changed[_place(made)] = made
            changed[claim] = bound_claim(changed[claim], made)
    return changed
