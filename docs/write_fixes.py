"""Writes docs/fixes.md from the records in config/fixes.py: `python -m docs.write_fixes`. A test compares the two."""

from __future__ import annotations

from pathlib import Path

from config.fixes import table

PAGE = Path(__file__).with_name("fixes.md")
HEAD = """# Mended defects

Pumice decides as Volcano v1.15.1 does, defects included, since people compare. Each defect that is known has a switch
that mends it:

```yaml
configurations:
- name: pumice
  arguments:
    fix: [enqueue-charges-once, tdm-past-midnight]
```

Panics of Volcano are never reproduced. This table is made from `config/fixes.py` by `python -m docs.write_fixes`.

"""


def page() -> str:
    """The whole page."""
    return HEAD + table()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
