"""Specs that are settled once for many pods: each pod gets its own copy, and a spec that differs is another one."""

from __future__ import annotations

from typing import Any

from actors.api.admission.pod_spec import default_pod_spec, pod_spec_problems, qos_class
from actors.api.admission.pod_templates import problems, settled


def spec_of(cpu: Any = 1, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}], **more}


def test_it_is_what_defaults_make_of_it_every_time() -> None:
    specs: list[dict[str, Any]] = [
        spec_of(),
        spec_of(),
        spec_of("2"),
        spec_of(restartPolicy="Never"),
        {"containers": []},
        {},
    ]
    for spec in specs:
        given, service = settled(spec)
        default_pod_spec(spec)
        assert (given, service) == (spec, qos_class(spec))


def test_what_a_pod_does_with_its_spec_is_not_seen_by_the_next() -> None:
    first, _ = settled(spec_of())
    first["containers"][0]["resources"]["requests"]["cpu"] = "7"
    second, _ = settled(spec_of())
    assert second["containers"][0]["resources"]["requests"]["cpu"] == "1"


def test_problems_are_found_every_time_and_belong_to_the_asker() -> None:
    wrong = spec_of(restartPolicy="Sometimes")
    expected = pod_spec_problems(wrong, "spec")
    assert expected
    problems(wrong).clear()
    assert problems(wrong) == expected
    assert problems(spec_of()) == []
