"""What is remembered of texts: short ones only."""

from pumice.core.texts import LONGEST, remembers


def test_long_texts_are_looked_at_each_time_and_not_kept() -> None:
    seen: list[str] = []

    @remembers(10)
    def look(text: str) -> int:
        seen.append(text)
        return len(seen)

    long = "x" * (LONGEST + 1)
    assert [look(text) for text in ("b", "b", "c", "c", long, long)] == [1, 1, 2, 2, 3, 4]
    assert seen == ["b", "c", long, long]


def test_it_begins_anew_when_it_knows_so_many() -> None:
    seen: list[str] = []

    @remembers(2)
    def look(text: str) -> None:
        seen.append(text)

    for text in ("a", "b", "a", "b", "c", "c", "a"):
        look(text)
    assert seen == ["a", "b", "c", "a"]
