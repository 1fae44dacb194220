"""What the longest request is said to be about."""

import pytest

from pumice.actors.api_server.server import told_of
from pumice.core.messages import commands
from pumice.core.messages.commands import ReadRevision
from pumice.storage.codec import pack

POD = {"kind": "Pod", "metadata": {"namespace": "default", "name": "a"}}


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (commands.Create(pack(POD)), "Pod default/a at the api server"),
        (commands.Update(pack({"kind": "Node", "metadata": {"name": "n"}})), "Node n at the api server"),
        (commands.Create(pack({"kind": "Pod", "metadata": None})), "Pod at the api server"),
        (commands.Create(pack({"metadata": "x"})), "at the api server"),
        (commands.Create(pack([])), "at the api server"),
        (commands.Create(b"\xc1"), "at the api server"),
        (commands.Patch("Pod", "default", "a", b""), "Pod default/a at the api server"),
        (commands.List("Pod", "default"), "Pod default at the api server"),
        (ReadRevision(), "at the api server"),
    ],
)
def test_a_request_is_told_by_its_object(request_: commands.StoreRequest, told: str) -> None:
    assert told_of(request_) == told
