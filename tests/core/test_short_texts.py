"""What is remembered of texts: short ones only."""

from core.short_texts import LONGEST, remembers


def test_long_texts_are_looked_at_each_time_and_not_kept() -> None:
    seen: list[tuple[str, object]] = []

    @remembers(10)
    def look(name: str, value: object) -> int:
        seen.append((name, value))
        return len(seen)

    long = "x" * (LONGEST + 1)
    assert [look("a", value) for value in ("b", "b", 5, 5, long, long)] == [1, 1, 2, 2, 3, 4]
    assert seen == [("a", "b"), ("a", 5), ("a", long), ("a", long)]
