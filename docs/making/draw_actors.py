"""Draws docs/pictures/actors.svg from the tables below: `python -m docs.making.draw_actors`.

A test draws it again and compares.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape  # nosec B406

WIDTH, HEIGHT = 1160, 964
PICTURE: Final = Path(__file__).parents[1] / "pictures" / "actors.svg"


class Box(NamedTuple):
    """A box around its centre. A role says by the title in which box it is drawn."""

    title: str
    note: str
    x: int
    y: int
    width: int = 170
    height: int = 54
    style: str = "actor"


class Arrow(NamedTuple):
    """A line through the points with its label at a place; `both` for two heads.

    `senders`, `receivers`: titles of boxes; it stands for all that roles of the first send to roles of the second.
    """

    points: tuple[tuple[int, int], ...]
    label: str
    at: tuple[int, int]
    senders: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    both: bool = False


BINDERS: Final = "bind workers × N"
EFFECTS: Final = (BINDERS, "evict workers × N", "status writer")

SHARED: Final = tuple(
    Box(what, note, 150 + 287 * (number % 4), 665 + 64 * (number // 4), 270, 50, "shared")
    for number, (what, note) in enumerate(
        (
            ("activity board", "everybody: what is left to do"),
            ("clock", "everybody: the time"),
            ("decoded objects", "the api server, who watches it; a storm"),
            ("admission hook", "controllers, node agents, config watcher"),
            ("longest step", "api server, gateway"),
            ("truth", "api server; a storm's auditors read it"),
            ("faults", "api server, extender client; a storm"),
            ("faults of clients", "gateway, node agents; the summary"),
            ("listings", "api server, gateway; the summary"),
            ("snapshots", "cache, session runner"),
            ("view version", "cache, session runner"),
            ("permission to schedule", "real cluster, session runner"),
            ("configuration", "controllers, session runner or mirror; a storm"),
            ("sessions", "session runner, action workers"),
            ("core", "session runner, action workers"),
            ("dry runs", "action workers, dry-run workers"),
            ("journal", "recorder, checkpointer"),
            ("newest record", "recorder, checkpointer"),
        )
    )
)
"""Groups held by reference (`pumice.actors.system.references`), and their holders: at the bottom, without lines."""

BOXES: Final = (
    Box("manifests · traces · dumps", "", 340, 60, 240, 40, "outside"),
    Box("gateway", "kubectl, browsers", 575, 60, 150),
    Box("metrics", "Volcano's names", 820, 60),
    Box("supervisor", "starts, restarts, stops all", 1050, 60),
    Box("config watcher", "follows a ConfigMap", 110, 60),
    Box("controllers", "jobs, groups, queues, volumes", 110, 160),
    Box("usage collector", "asks a Prometheus", 110, 380),
    Box("node agents", "run pods to their end", 110, 270),
    Box("api server", "the truth, with revisions", 340, 215),
    Box("cache", "the scheduler's view", 560, 215),
    Box("session runner", "one cycle at a time", 820, 215),
    Box("action workers", "one for each action", 1050, 215),
    Box("dry-run workers × N", "trial preemption", 1050, 345, 180),
    Box("mirror", "of a real cluster", 110, 475),
    Box("real cluster", "in the api's place", 722, 330, 112),
    Box("extender client", "asks processes outside", 1045, 430, 150),
    Box("effects", "", 560, 405, 190, 214, "group"),
    Box("bind workers × N", "one does volumes first", 560, 345),
    Box("evict workers × N", "idempotent", 560, 410),
    Box("status writer", "phases, conditions", 560, 475),
    Box("recorder", "group commit: what it acknowledges is on disk", 580, 575, 660),
    Box("checkpointer", "states, from the journal", 110, 575, 190),
    Box("SQLite journal", "hash-chained", 1050, 575, 170, 54, "outside"),
    *SHARED,
)


ARROWS: Final = (
    Arrow(((320, 80), (320, 188)), "create, in time", (326, 99), ("manifests · traces · dumps",), ("api server",)),
    Arrow(
        ((195, 50), (206, 50), (206, 24), (695, 24), (695, 195), (735, 195)),
        "a new configuration",
        (226, 36),
        ("config watcher",),
        ("session runner",),
    ),
    Arrow(((195, 70), (310, 128), (310, 188)), "watch", (203, 98), ("config watcher",), ("api server",), both=True),
    Arrow(((905, 60), (965, 60)), "counts", (915, 53), ("metrics",), ("supervisor",)),
    Arrow(((1050, 188), (1050, 87)), "hung workers", (1056, 142), ("action workers",), ("supervisor",)),
    Arrow(
        ((370, 188), (370, 105), (1020, 105), (1020, 87)),
        "planted crashes",
        (880, 99),
        ("api server",),
        ("supervisor",),
    ),
    Arrow(
        ((1135, 60), (1150, 60), (1150, 490), (890, 490), (890, 548)),
        "lives of actors",
        (1054, 484),
        ("supervisor",),
        ("recorder",),
    ),
    Arrow(
        ((560, 87), (560, 125), (390, 125), (390, 188)), "requests, watches", (430, 138), ("gateway",), ("api server",)
    ),
    Arrow(((530, 87), (530, 160), (450, 160), (450, 548)), "faults", (458, 155), ("gateway",), ("recorder",)),
    Arrow(((650, 45), (735, 45)), "", (0, 0), ("gateway",), ("metrics",)),
    Arrow(((590, 87), (590, 188)), "the board", (530, 172), ("gateway",), ("cache",)),
    Arrow(((620, 87), (620, 150), (775, 150), (775, 188)), "gauges", (702, 144), ("gateway",), ("session runner",)),
    Arrow(
        ((195, 160), (300, 160), (300, 188)), "watch, write", (203, 153), ("controllers",), ("api server",), both=True
    ),
    Arrow(
        ((195, 140), (345, 140), (345, 115), (760, 115), (760, 87)),
        "latency",
        (766, 100),
        ("controllers",),
        ("metrics",),
    ),
    Arrow(
        ((195, 270), (300, 270), (300, 242)), "watch, write", (203, 285), ("node agents",), ("api server",), both=True
    ),
    Arrow(((195, 380), (310, 380), (310, 242)), "loads", (203, 373), ("usage collector",), ("api server",)),
    Arrow(((195, 465), (330, 465), (330, 242)), "reflect", (203, 458), ("mirror",), ("api server",)),
    Arrow(((195, 490), (290, 490), (290, 548)), "cycles", (203, 503), ("mirror",), ("recorder",)),
    Arrow(((25, 475), (14, 475), (14, 12), (820, 12), (820, 33)), "agreement", (720, 26), ("mirror",), ("metrics",)),
    Arrow(((425, 215), (475, 215)), "watch", (434, 208), ("cache",), ("api server",), both=True),
    Arrow(((645, 215), (735, 215)), "snapshot", (677, 208), ("session runner",), ("cache",), both=True),
    Arrow(((820, 188), (820, 87)), "durations", (826, 142), ("session runner",), ("metrics",)),
    Arrow(((905, 207), (965, 207)), "session", (911, 200), ("session runner",), ("action workers",)),
    Arrow(((965, 225), (905, 225)), "decided", (911, 240)),
    Arrow(
        ((1050, 242), (1050, 318)), "candidates", (1056, 284), ("action workers",), ("dry-run workers × N",), both=True
    ),
    Arrow(((870, 242), (870, 415), (970, 415)), "", (0, 0), ("session runner",), ("extender client",)),
    Arrow(((1135, 230), (1144, 230), (1144, 430), (1120, 430)), "", (0, 0), ("action workers",), ("extender client",)),
    Arrow(
        ((1045, 457), (1045, 522), (345, 522), (345, 242)), "pods", (700, 517), ("extender client",), ("api server",)
    ),
    Arrow(((790, 242), (790, 405), (655, 405)), "committed", (717, 398), ("session runner",), EFFECTS),
    Arrow(
        ((620, 298), (620, 265), (665, 265), (665, 60), (735, 60)), "durations", (615, 172), (BINDERS,), ("metrics",)
    ),
    Arrow(((560, 298), (560, 242)), "outcomes", (504, 274), EFFECTS, ("cache",)),
    Arrow(((645, 345), (651, 345), (651, 475), (645, 475)), "", (0, 0), (BINDERS,), ("status writer",)),
    Arrow(((465, 405), (365, 405), (365, 242)), "bind, evict, …", (371, 398), EFFECTS, ("api server",)),
    Arrow(((655, 330), (666, 330)), "", (0, 0), EFFECTS, ("real cluster",)),
    Arrow(((722, 303), (722, 256), (405, 256), (405, 242)), "reflect", (680, 251), ("real cluster",), ("api server",)),
    Arrow(((630, 242), (630, 290), (690, 290), (690, 303)), "look again", (634, 284), ("cache",), ("real cluster",)),
    Arrow(((320, 242), (320, 548)), "mutations", (258, 440), ("api server",), ("recorder",)),
    Arrow(((560, 512), (560, 548)), "outcomes", (566, 535), EFFECTS, ("recorder",)),
    Arrow(((850, 242), (850, 548)), "cycles, decisions", (856, 440), ("session runner",), ("recorder",)),
    Arrow(((205, 575), (250, 575)), "", (0, 0), ("checkpointer",), ("recorder",)),
    Arrow(((910, 575), (965, 575)), "", (0, 0)),
)

STYLE: Final = """
  .paper { fill: #ffffff; }
  rect { stroke: #33475b; stroke-width: 1.4; }
  .actor { fill: #e8f1fa; }
  .outside { fill: #ffffff; stroke-dasharray: 5 4; }
  .shared { fill: #f3f7ee; stroke-dasharray: 2 3; }
  .group { fill: #f6f7f9; stroke: #9aa7b4; }
  text { font-family: Helvetica, Arial, sans-serif; fill: #1d2b38; }
  .title { font-size: 14px; font-weight: 600; text-anchor: middle; }
  .note { font-size: 11px; text-anchor: middle; fill: #52616f; }
  .label { font-size: 11px; fill: #8a4b08; }
  .line { fill: none; stroke: #33475b; stroke-width: 1.4; }
"""
HEAD: Final = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#33475b"/></marker>'
)


def draw_box(box: Box) -> str:
    """Return the box, its title, and its note under it; the title of a group stands at its top."""
    left, top = box.x - box.width // 2, box.y - box.height // 2
    shape = f'<rect class="{box.style}" x="{left}" y="{top}" width="{box.width}" height="{box.height}" rx="7"/>'
    if box.style == "group":
        return shape
    lines = [("title", box.title, -3 if box.note else 5), *([("note", box.note, 15)] if box.note else [])]
    words = (f'<text class="{kind}" x="{box.x}" y="{box.y + down}">{escape(text)}</text>' for kind, text, down in lines)
    return "\n".join([shape, *words])


def draw_arrow(arrow: Arrow) -> str:
    """Return the line with its heads, and its label."""
    heads = 'marker-end="url(#head)"' + (' marker-start="url(#head)"' if arrow.both else "")
    line = f'<polyline class="line" points="{" ".join(f"{x},{y}" for x, y in arrow.points)}" {heads}/>'
    if not arrow.label:
        return line
    x, y = arrow.at
    return f'{line}\n<text class="label" x="{x}" y="{y}">{escape(arrow.label)}</text>'


def picture(title: str, width: int, height: int, boxes: Iterable[Box], arrows: Iterable[Arrow]) -> str:
    """Return a whole picture as SVG text."""
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
            f"<style>{STYLE}</style>",
            f"<defs>{HEAD}</defs>",
            f'<rect class="paper" width="{width}" height="{height}" rx="10"/>',
            *(draw_box(box) for box in boxes),
            *(draw_arrow(arrow) for arrow in arrows),
            "</svg>\n",
        ]
    )


def draw() -> str:
    """Return the picture of the actors."""
    return picture("The actors of Pumice", WIDTH, HEIGHT, BOXES, ARROWS)


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
