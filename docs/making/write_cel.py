"""Write docs/reference/cel.md: what expressions may say, from the table of functions itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pumice.core.kube.cel.environment import LIBRARIES, OPERATORS
from pumice.core.kube.cel.reading import MACROS

PAGE: Final = Path(__file__).parents[1] / "reference" / "cel.md"
_HEAD: Final = """\
# Expressions

<!-- written by `nox -s documents`: change docs/making/write_cel.py -->

Rules of definitions (`x-kubernetes-validations`), ValidatingAdmissionPolicies, `matchConditions` of webhooks and
selectors of devices are written in CEL. Pumice has the environment of Kubernetes 1.35 (apiserver's
`pkg/cel/environment`), with an evaluator of its own; it was compared with Kubernetes' own on 3,800 expressions of the
tests of both libraries and others.

- **When an expression is refused.** An expression is read and checked with its types when the object that holds it is
  created or changed: an undeclared variable, an unknown function or field, wrong arguments, a pattern, duration or
  timestamp that cannot be read, or a result of another type gives a 422. The checker is Kubernetes' with one
  difference: where it does not know a type, it refuses nothing.
- **Literals.** Raw (`r"\\d"`), triple-quoted and bytes (`b"\\xff"`) strings with all escapes, hexadecimal and
  unsigned numbers (`0x1F`, `3u`), lists and maps with optional elements (`[?a.?b]`), comments.
- **Numbers.** Integers have 64 bits: overflow, and division by zero, are errors. Numbers of different types can be
  ordered, and equal when one of them is `dyn`.
- **Types of a schema.** `number` is a double, strings of format `date`, `date-time`, `duration` and `byte` are what
  they say, lists of type `set` and `map` are compared and added as such. Fields are escaped as in Kubernetes
  (`self.a__dash__b`, `self.__namespace__`); unknown fields that are kept are not known to rules.
- **Variables.** Rules: `self`, `oldSelf` (an optional one with `optionalOldSelf`). Policies and webhooks: `object`,
  `oldObject`, `request`, `namespaceObject` (null for webhooks), `authorizer`; policies also `params` where there is a
  `paramKind`, and `variables`. Device selectors: `device`, and the macro `cel.bind`.
- **`authorizer`.** Roles are stored and not enforced here, so every check is `allowed()`, with an empty `reason()`,
  and none has `errored()`. `serviceAccount`, `path` and `resource` refuse the names that Kubernetes refuses.
- **Costs.** Kubernetes estimates what an expression costs when it is created. Pumice counts steps while it works
  (core/kube/cel/costs.py): at most 100,000 for one expression of a policy, webhook or device; 40,000, and three for
  each value of the object, for all rules of a definition. What needs more is an error, and is stopped before it holds
  up other requests.

Not there, as in Kubernetes 1.35: `math`, `base64`, `string.reverse`, messages of protobuf other than those of the
types below. MutatingAdmissionPolicies, which are not served by default in 1.35, are not served.

"""


def page() -> str:
    """Return the page."""
    parts = [_HEAD, "## Macros\n\n", "`has(a.b)`", *(f", {each}" for each in _macros()), ".\n"]
    for title, library in LIBRARIES.items():
        if library is not OPERATORS:
            listed = "".join(f"{text}\n" for text in library)
            parts.append(f"\n## {title[0].upper()}{title[1:]}\n\n```\n{listed}```\n")
    return "".join(parts)


def _macros() -> list[str]:
    return [f"`{name}({', '.join('xyzw'[:count])})`" for name, count in sorted(MACROS)]


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
