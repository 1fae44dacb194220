"""Writes docs/reference/fixes.md from the records in config/fixes.py: `python -m docs.making.write_fixes`.

A test compares the two.
"""

from __future__ import annotations

from pathlib import Path

from pumice.config.fixes import table

PAGE = Path(__file__).parents[1] / "reference" / "fixes.md"
HEAD = """# Mended defects

Pumice decides as Volcano v1.15.1 does, defects included, since people compare. Each defect that is known has a switch
that mends it:

```yaml
configurations:
- name: pumice
  arguments:
    fix: [enqueue-charges-once, tdm-past-midnight]
```

Panics of Volcano are never reproduced. `python -m docs.making.write_fixes` makes this table from `config/fixes.py`.

"""

NOTHING_TO_MEND = {
    'shuffle with tdm ends the process on an assertion ("resource is not sufficient to do operation")': (
        "a panic: the victims are evicted, as was meant"
    ),
    "backfill uses the node it did not find when scoring fails": "a panic: the task stays pending",
    "`volumebinding.weight` counts in the first session only": (
        "the score that it weighs stands behind a feature gate that is off in Kubernetes 1.35 "
        "(StorageCapacityScoring), and is always 0"
    ),
    "a pod with shares of GPUs on a node that says it has none ends the process (`AddResource` of nothing)": (
        "a panic: what the pod has is not counted"
    ),
    "the lock of a node stays for five minutes where a gang was given up (`deviceshare.NodeLockEnable`)": (
        "a lock is written with the bind: two pods of a gang that both need the node would lock it again and again; "
        "others wait for as long as the gang that is given up takes the lock anew in each cycle, in Volcano for five "
        "minutes after each time"
    ),
    "deviceshare under MIG: once a slice of a group with several profiles is in use, slices of its other profiles are "
    "given to no pod until the whole card is free (`pickFromGroup`)": (
        "kept, with every switch: `pumice explain` names it as the reason of a waiting pod"
    ),
    "an extender is asked `jobReady` of jobs without pending pods, and gets by image how many nodes had come with it "
    "when a node came": "nothing hangs on the first; it gets all nodes that have the image",
    "a session over 10,000 nodes and 100,000 running pods takes seconds to open": "see `pumice bench open`",
}


def tail() -> str:
    """Return the table of differences that have no switch."""
    head = "\nWithout a switch:\n\n| Volcano v1.15.1 | why |\n|---|---|\n"
    return head + "".join(f"| {what} | {why} |\n" for what, why in NOTHING_TO_MEND.items())


def page() -> str:
    """Return the whole page."""
    return HEAD + table() + tail()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
