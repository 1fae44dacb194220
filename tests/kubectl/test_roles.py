"""kubectl over TLS, against a server that enforces roles."""

from pathlib import Path

from tests.kit.kubectl import kubectl_for
from tests.kit.roles import OF_NAMESPACES, USER
from tests.kit.serving import served
from tests.kubectl.conftest import pod, text


def test_a_service_account_may_do_what_its_role_allows(tmp_path: Path) -> None:
    with served(tmp_path, roles=True, role=OF_NAMESPACES) as server:
        kubectl = kubectl_for(server)
        assert USER in kubectl("auth", "whoami")
        kubectl("create", "namespace", "team")
        kubectl("-n", "team", "create", "serviceaccount", "robot")
        robot = ("--token", kubectl("-n", "team", "create", "token", "robot"))
        here = (*robot, "-n", "team")
        assert "cannot create resource" in kubectl.refused(*here, "create", "-f", "-", stdin=text(pod("early")))
        kubectl("-n", "team", "create", "rolebinding", "r", "--clusterrole=edit", "--serviceaccount=team:robot")
        kubectl(*here, "create", "-f", "-", stdin=text(pod("mine")))
        kubectl(*here, "wait", "--for=condition=Ready", "pod/mine", "--timeout=30s")
        assert "cannot list resource" in kubectl.refused(*robot, "-n", "default", "get", "pods")
        assert "cannot list resource" in kubectl.refused(*robot, "get", "nodes")
