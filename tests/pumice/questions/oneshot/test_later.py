"""What is made of an input later only, where nobody has looked at the input before."""

from __future__ import annotations

from pumice.core.objects.metadata import Object
from pumice.questions.oneshot.expand import made_later


def test_of_sets_and_flows_that_nobody_would_admit_as_much_is_said_as_can_be() -> None:
    """No list of all pods is made; what has no name is left out."""
    meta: Object = {"namespace": "default", "name": "web"}
    kept: Object = {"metadata": meta}
    owner: Object = {"metadata": meta, "spec": {"replicas": 10**15}}
    nameless: Object = {"metadata": meta, "spec": {"tasks": [{"replicas": 1}], "flows": [{}]}}
    kinds = ("StatefulSet", "Job", "JobFlow")
    objects = {(kind, "default", "web"): nameless if kind != "StatefulSet" else owner for kind in kinds}
    (said,) = made_later({**objects, ("Pod", "default", "web-0"): kept})
    assert said.startswith("StatefulSet default/web: pod web-1 is made when web-0 runs and is ready, and 99999")
    assert made_later({("StatefulSet", "default", "web"): kept}) == []
