"""What is remembered of texts: short ones only."""

from core.short_texts import LONGEST, remembers


def test_long_texts_are_looked_at_each_time_and_not_kept() -> None:
    seen: list[str] = []

    @remembers(10)
    def look(text: str) -> int:
        seen.append(text)
        return len(seen)

    long = "x" * (LONGEST + 1)
    assert [look(text) for text in ("b", "b", "c", "c", long, long)] == [1, 1, 2, 2, 3, 4]
    assert seen == ["b", "c", long, long]
