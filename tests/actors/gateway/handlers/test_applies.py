"""What is asked of a server-side apply before the api sees it."""

import json
from typing import Any

import pytest

from tests.actors.gateway.rig import PODS, QUEUES, Web, serving

pytestmark = pytest.mark.anyio


async def patched(
    web: Web, path: str, body: Any, code: int = 200, media: str = "application/merge-patch+json"
) -> dict[str, Any]:
    return await web.send("PATCH", path, body, code, **{"content-type": media})


async def test_what_is_applied_has_the_fields_of_its_kind_and_each_once() -> None:
    apply = "application/apply-patch+yaml"
    path = f"{QUEUES}/q?fieldManager=m&fieldValidation=Ignore"
    typed = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    async with serving() as web:
        refused = await patched(web, path, {**typed, "spec": {"wieght": 1}}, 400, apply)
        assert refused["message"] == (
            "failed to create typed patch object (q; scheduling.volcano.sh/v1beta1, Kind=Queue): "
            ".spec.wieght: field not declared in schema"
        )
        twice = b"spec:\n  weight: 1\n  weight: 2\n"
        assert 'line 3: key "weight" already set in map' in (await patched(web, path, twice, 400, apply))["message"]
        strict = path.replace("Ignore", "Strict")
        text = json.dumps({**typed, "spec": {"weight": 1}}).replace('"weight": 1', '"weight": 1, "weight": 2')
        found = await patched(web, strict, text.encode(), 400, apply)
        assert 'duplicate field "spec.weight"' in found["message"]
        await patched(web, path, {**typed, "spec": {"weight": 1}}, 201, apply)


async def test_what_is_applied_says_of_which_kind_it_is() -> None:
    path, apply = f"{QUEUES}/q?fieldManager=m", "application/apply-patch+yaml"
    async with serving() as web:
        found = await patched(web, path, {"kind": "Queue"}, 400, apply)
        assert found["message"].endswith("Specified patch version: , expected: scheduling.volcano.sh/v1beta1")
        found = await patched(web, path, {"apiVersion": "scheduling.volcano.sh/v1beta1"}, 400, apply)
        assert found["message"].endswith("the patch states no kind")


@pytest.mark.parametrize(
    ("manager", "why"),
    [
        ("%1b%5b31mRED", 'Invalid value: "\\x1b[31mRED": invalid character U+001B (at position 0)'),
        ("a%0ab", "invalid character U+000A (at position 1)"),
        ("%c3%a9%00", "invalid character U+0000 (at position 2)"),
        ("%e2%80%ae", "invalid character U+202E (at position 0)"),
        ("%ff", "invalid character U+FFFD (at position 0)"),
        ("x" * 129, "Too long: may not be more than 128 bytes"),
        ("%c3%a9" * 65, "Too long: may not be more than 128 bytes"),
    ],
)
async def test_a_field_manager_is_a_short_text_that_people_can_read(manager: str, why: str) -> None:
    body = {"metadata": {"labels": {"a": "b"}}}
    async with serving() as web:
        await web.create_pods("a")
        found = await patched(web, f"{PODS}/a?fieldManager={manager}", body, 422)
        assert found["message"].startswith("PatchOptions.meta.k8s.io")
        assert why in found["message"]
        await patched(web, f"{PODS}/a?fieldManager=%c3%a9%20b", body)
