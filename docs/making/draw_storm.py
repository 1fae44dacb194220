"""Draws docs/pictures/storm.svg, a storm from its seed to its file: `python -m docs.making.draw_storm`.

A test draws it again and compares.
"""

from pathlib import Path
from typing import Final

from docs.making.draw_actors import Arrow, Box, picture

WIDTH, HEIGHT = 940, 295
PICTURE: Final = Path(__file__).parents[1] / "pictures" / "storm.svg"
BOXES: Final = (
    Box("seed", "", 75, 135, 90, 44, "outside"),
    Box("inputs", "nodes, queues, jobs and their ends", 280, 55, 210),
    Box("faults", "by occasion", 280, 135, 210),
    Box("order", "of ready tasks", 280, 215, 210),
    Box("the real system", "on virtual time", 510, 135, 150),
    Box("monitor", "keeps books of its own", 730, 75, 170),
    Box("audit", "all books agree", 730, 195, 170),
    Box("fewer events", "", 870, 135, 110, 44),
    Box("storm-PROFILE-N.json", "", 830, 262, 180, 34, "outside"),
)
ARROWS: Final = (
    Arrow(((120, 125), (145, 125), (145, 55), (175, 55)), "", (0, 0)),
    Arrow(((120, 135), (175, 135)), "", (0, 0)),
    Arrow(((120, 145), (145, 145), (145, 215), (175, 215)), "", (0, 0)),
    Arrow(((385, 55), (410, 55), (410, 122), (435, 122)), "", (0, 0)),
    Arrow(((385, 135), (435, 135)), "", (0, 0)),
    Arrow(((385, 215), (410, 215), (410, 148), (435, 148)), "", (0, 0)),
    Arrow(((510, 108), (510, 75), (645, 75)), "every record", (530, 68)),
    Arrow(((510, 162), (510, 195), (645, 195)), "each cycle, and at rest", (520, 210)),
    Arrow(((815, 75), (870, 75), (870, 113)), "violation", (820, 68)),
    Arrow(((815, 185), (850, 185), (850, 157)), "violation", (756, 163)),
    Arrow(((890, 157), (890, 245)), "", (0, 0)),
)


def draw() -> str:
    """Return the picture."""
    return picture("A storm, from its seed to its file", WIDTH, HEIGHT, BOXES, ARROWS)


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
