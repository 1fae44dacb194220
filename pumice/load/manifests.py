# SPDX-License-Identifier: Apache-2.0
"""Manifests and `kubectl get` dumps to Kubernetes objects.

One bad document does not stop the others: what cannot be used is a problem in the result, named by file, document and
line; unknown kinds are skipped and named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import msgspec

from pumice.cluster.api.kinds import Kind, kind_of, known_types
from pumice.cluster.api.schema.shapes import shape_of_kind
from pumice.cluster.api.verbs.requests import drop_nulls
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.config.errors import describe
from pumice.core.objects.metadata import Object, is_list, is_mapping, section, text_map
from pumice.core.objects.soundness import unsound
from pumice.errors import InputError
from pumice.load.archives import read_archive
from pumice.load.documents import DocumentError, ManifestDocument, read_documents
from pumice.load.exports import exported
from pumice.load.openb import PREFIX, read_openb
from pumice.load.places import JsonLines, ManifestPlace
from pumice.load.source import STDIN, read_texts
from pumice.load.traces.jobs import Left
from pumice.load.traces.read import is_trace, read_trace

# --- Manifests of another cluster


def still_running(objects: Sequence[Object]) -> list[Object]:
    """Return running pods that run for ever, unless they have a duration: their remaining time is unknown."""
    return [_for_ever(obj) if _was_running(obj) else obj for obj in objects]


def _was_running(obj: Object) -> bool:
    if obj["kind"] != "Pod" or section(obj, "status").get("phase") != "Running":
        return False
    return DURATION not in text_map(obj["metadata"].get("annotations"))


def _for_ever(pod: Object) -> Object:
    annotations = {**text_map(pod["metadata"].get("annotations")), DURATION: "0"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


JSON_SUFFIXES: Final = (".json", ".json.gz", ".jsonl", ".jsonl.gz")


@dataclass(slots=True)
class Loaded:
    """Loaded objects in order of arrival, problems (unused input), and skipped kinds.

    `older`: versions of objects that a newer one was given of. `unused`: counts what cannot be used of an archive,
    while one is read.
    """

    objects: MutableSequence[Object] = field(default_factory=list[Object])
    problems: list[InputError] = field(default_factory=list[InputError])
    skipped: list[str] = field(default_factory=list[str])
    places: dict[tuple[str, str, str], ManifestPlace] = field(default_factory=dict[tuple[str, str, str], ManifestPlace])
    older: int = 0
    unused: Left | None = None
    _at: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])

    def put(self, key: tuple[str, str, str], obj: Object, place: ManifestPlace) -> InputError | None:
        """Take an object, or record why not. Backups hold some objects twice, and several versions of others: the
        newest one counts. Where the newest is unknown, the first stays and the other is a problem.
        """
        at = self._at.get(key) if key[2] else None
        if at is None:
            self._at[key] = len(self.objects)
            self.places[key] = place
            self.objects.append(obj)
            return None
        before = self.objects[at]
        if obj == before:
            return None
        age = _version(obj), _version(before)
        if age[0] is None or age[1] is None:
            name = "/".join(part for part in key[1:] if part)
            return place.error(f"{obj['kind']} {name} was already given at {self.places[key]}, with other content")
        self.older += age[0] != age[1]
        if age[0] > age[1]:
            self.objects[at], self.places[key] = obj, place
        return None

    def refuse(self, problem: InputError) -> None:
        """Take note of a part of the input that cannot be used: with its place, of an archive by its reason."""
        if self.unused is None:
            self.problems.append(problem)
        else:
            self.unused.note(problem.problem)

    def skip(self, place: ManifestPlace, what: str, kind: str) -> None:
        """Take note of an object of a kind that is unknown."""
        if self.unused is None:
            self.skipped.append(str(place.error(f"skipped {what}")))
        else:
            self.unused.note(f"{kind} is not a kind that Pumice knows")

    def leave(self, source: str, left: Left) -> None:
        """Say what was left out of a source, by the reason."""
        self.skipped += [f"{source}: {count} {left.what} left out: {why}" for why, count in left.out.items()]

    def place_of(self, obj: Object) -> str:
        """Return the place of an object in the input, for an error; empty when unknown."""
        kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
        place = self.places.get(_identity(kind, obj)) if kind else None
        return "" if place is None else str(place)

    def source_of(self, obj: Object) -> str:
        """Return the input file of an object; empty when unknown."""
        kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
        place = self.places.get(_identity(kind, obj)) if kind else None
        return "" if place is None else place.source

    def name(self, obj: Object, name: str) -> None:
        """Name an unnamed object; its place in the input stays known."""
        kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
        place = self.places.get(_identity(kind, obj)) if kind else None
        obj["metadata"]["name"] = name
        if kind and place is not None:
            self.places[_identity(kind, obj)] = place


def load(paths: Iterable[str], stdin: TextIO, into: Loaded | None = None) -> Loaded:
    """Load everything behind the paths, in order, `into` an empty list. InputError for a path that does not exist."""
    loaded = into or Loaded()
    for path in paths:
        if path.startswith(PREFIX):
            place = ManifestPlace(path, 0, 0)
            for obj in read_openb(path):
                _take(loaded, obj, place)
        elif is_trace(path):
            objects, left = read_trace(path)
            place = ManifestPlace(path, 0, 0)
            for obj in objects:
                if not _has(loaded, obj):  # a queue that was given stands as it was given
                    _take(loaded, obj, place)
            loaded.leave(path, left)
        else:
            _load_files(path, stdin, loaded)
    return loaded


def _load_files(path: str, stdin: TextIO, loaded: Loaded) -> None:
    """Load manifests, or an archive: an archive is not written by hand, so what cannot be used of it is counted."""
    left = Left(what="files")
    archive = None if path == STDIN else read_archive(path, left)
    if archive is not None:
        loaded.unused = Left(what="documents")
    for source, text in read_texts(path, stdin) if archive is None else archive:
        if isinstance(text, InputError):
            loaded.refuse(text)
        else:
            load_text(text, source, loaded)
    loaded.leave(path, left)
    if loaded.unused is not None:
        loaded.leave(path, loaded.unused)
        loaded.unused = None


def _has(loaded: Loaded, obj: Object) -> bool:
    """Return whether a queue or a priority class of a trace was loaded already."""
    kind = kind_of(obj["apiVersion"], obj["kind"]) if obj["kind"] in ("Queue", "PriorityClass") else None
    return kind is not None and _identity(kind, obj) in loaded.places


def load_text(text: str, source: str, loaded: Loaded) -> None:
    """Add the objects of one text (YAML or JSON, several documents, List kinds) to the loaded ones."""
    for document in _documents(text, source):
        if isinstance(document, DocumentError):
            loaded.refuse(_unreadable(document, source))
            continue
        for line, remark in document.remarks:
            loaded.skipped.append(str(InputError(remark, source=source, document=document.number, line=line)))
        left = Left(what="parts")
        for value, place in _values(document, source, left):
            _take(loaded, value, place)
        loaded.leave(source, left)


def plain_values(text: str, source: str) -> Iterator[Any]:
    """Yield what the documents of a text and the items of its lists say, unjudged: a server may know kinds that this
    process does not. Raises InputError for a document that cannot be read.
    """
    for document in _documents(text, source):
        if isinstance(document, DocumentError):
            raise _unreadable(document, source)
        yield from (value for value, _ in _values(document, source, Left()))


def _unreadable(error: DocumentError, source: str) -> InputError:
    problem = f"{error.problem} (column {error.column})"
    return InputError(problem, source=source, document=error.document, line=error.line)


def _values(document: ManifestDocument, source: str, left: Left) -> Iterator[tuple[Any, ManifestPlace]]:
    """Yield what a document holds: itself, the items of a list, or the objects of another tool's export."""
    export = exported(document.value, left)
    if export is None:
        return _flatten(document, source)
    place = ManifestPlace(source, document.number, document.line, document.lines)
    return ((obj, place) for obj in export)


def _documents(text: str, source: str) -> Iterator[ManifestDocument | DocumentError]:
    """Yield the documents of JSON, JSON lines or YAML; after JSON documents YAML may follow, as in kubectl."""
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] not in ("{", "["):
        return map(_about_json, read_documents(text)) if source.endswith(JSON_SUFFIXES) else read_documents(text)
    try:
        return iter([ManifestDocument(1, 0, msgspec.json.decode(text), lines=JsonLines(text, 0))])
    except (RecursionError, msgspec.DecodeError):  # of several documents, or the other readers say where
        return _json_stream(text, is_json=source.endswith(JSON_SUFFIXES) or text.lstrip()[1:].lstrip()[:1] == '"')


def _about_json(found: ManifestDocument | DocumentError) -> ManifestDocument | DocumentError:
    """Word an error about JSON for a reader who wrote JSON."""
    if isinstance(found, ManifestDocument):
        return found
    return DocumentError(found.problem.replace("YAML", "JSON"), found.line, found.column, found.document)


def _json_stream(text: str, *, is_json: bool) -> Iterator[ManifestDocument | DocumentError]:
    """Yield JSON documents one after another, as some tools print them, then the rest as YAML."""
    decoder, number, position = json.JSONDecoder(), 0, _after_space(text, 0)
    problem: DocumentError | None = None
    while problem is None and text[position : position + 1] in ("{", "["):
        line = text.count("\n", 0, position) + 1
        lines = JsonLines(text, position)
        number += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            problem = DocumentError(f"malformed JSON: {error.msg}", error.lineno, error.colno, number)
        except RecursionError:  # the reader of YAML says where
            number -= 1
            break
        except ValueError:  # of a number; Python bounds how many digits it reads
            problem = DocumentError("malformed JSON: a number of more digits than anything has", line, 1, number)
        else:
            yield ManifestDocument(number, line, value, lines=lines)
            position = _after_space(text, end)
    read = number - (problem is not None)
    rest = read_documents(text[position:], read, text.count("\n", 0, position))
    for index, document in enumerate(rest):
        if index == 0 and is_json and problem is not None and isinstance(document, DocumentError):
            yield problem  # no YAML either: speak of JSON to a reader who wrote JSON
            return
        yield _about_json(document) if is_json else document


def _after_space(text: str, position: int) -> int:
    return len(text) - len(text[position:].lstrip())


def _flatten(document: ManifestDocument, source: str) -> Iterator[tuple[Any, ManifestPlace]]:
    """Yield the document itself, or the items of a List; an empty document gives nothing."""
    value = document.value
    if value is None:
        return
    place = ManifestPlace(source, document.number, document.line, document.lines)
    items = value.get("items") if is_mapping(value) and str(value.get("kind")).endswith("List") else None
    if not is_list(items):
        yield value, place
        return
    lines: Sequence[int] = document.item_lines
    for index, item in enumerate(items):
        line = lines[index] if index < len(lines) else 0
        yield _typed_item(item, value), ManifestPlace(source, document.number, line, document.lines, index)


def _typed_item(item: object, listing: Object) -> Any:
    """Return an item with its type: items of a PodList need not say that they are Pods."""
    kind: str = listing["kind"]
    if not is_mapping(item) or "kind" in item or kind == "List":
        return item
    return {"apiVersion": listing.get("apiVersion"), "kind": kind.removesuffix("List"), **item}


def _take(loaded: Loaded, value: Any, place: ManifestPlace) -> None:
    problem = _shape_problem(value, place) or _unsound(value, place)
    if problem is not None:
        loaded.refuse(problem)
        return
    obj: Object = value
    kind = kind_of(obj["apiVersion"], obj["kind"])
    if kind is None:
        loaded.skip(place, _unknown(obj), f"{obj['apiVersion']} {obj['kind']}")
        return
    # as the API does with what comes over HTTP: a null quantity asks for nothing, and a null label is an empty text
    drop_nulls(obj, shape_of_kind(kind.group, kind.version, kind.kind))
    named = _named(obj, kind)
    if problem := loaded.put(_identity(kind, named), named, place):
        loaded.refuse(problem)


def _version(obj: Object) -> tuple[str, int] | None:
    """Return what tells the newer of two versions of an object: when it came, and the revision of its last change.

    One that was made again under its name came later, whatever the revisions say. None where it has no revision.
    """
    metadata: Object = obj["metadata"]
    revision = str(metadata.get("resourceVersion") or "")
    if not (revision.isascii() and revision.isdigit()):
        return None
    return str(metadata.get("creationTimestamp") or ""), int(revision)


def _shape_problem(value: object, place: ManifestPlace) -> InputError | None:
    if not is_mapping(value):
        return place.error(f"expected an object (a mapping with apiVersion and kind), was {describe(value)}")
    obj = value
    for key in ("apiVersion", "kind"):
        if not isinstance(obj.get(key), str) or not obj[key].isprintable():
            return place.error(f"expected a text, was {describe(obj.get(key))}", key)
    who = obj["kind"]
    if not isinstance(obj.get("metadata"), dict):
        return place.error(f"expected a mapping, was {describe(obj.get('metadata'))}", f"{who}: metadata")
    metadata: Object = obj["metadata"]
    name = metadata.get("name", metadata.get("generateName"))
    if not isinstance(name, str) or not name.isprintable() or not name:
        return place.error(f"expected a name, was {describe(name)}", f"{who}: metadata.name")
    namespace = metadata.get("namespace")
    if namespace is not None and not (isinstance(namespace, str) and namespace.isprintable()):
        return place.error(f"expected a name, was {describe(namespace)}", f"{who} {name}: metadata.namespace")
    for key in ("spec", "status"):
        if not isinstance(obj.get(key, {}), (dict, type(None))):
            return place.error(f"expected a mapping, was {describe(obj[key])}", f"{who} {name}: {key}")
    return None


def _unsound(obj: Object, place: ManifestPlace) -> InputError | None:
    problem = unsound(obj)
    return place.error(problem, f"{obj['kind']} {obj['metadata'].get('name')}") if problem else None


def _unknown(obj: Object) -> str:
    """Return the kind as it stands, with the versions under which it would be known."""
    same_kind = sorted(version for version, kind in known_types() if kind == obj["kind"])
    hint = f" (known as {', '.join(same_kind)})" if same_kind else ""
    name = obj["metadata"].get("name") or obj["metadata"].get("generateName")
    return f"{obj['apiVersion']} {obj['kind']} {name!r}: not a kind that Pumice knows{hint}"


def _named(obj: Object, kind: Kind) -> Object:
    """Return the object with the namespace that kubectl would fill in."""
    metadata: Object = obj["metadata"]
    if not kind.namespaced or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": "default"}}


def _identity(kind: Kind, obj: Object) -> tuple[str, str, str]:
    metadata: Object = obj["metadata"]
    return kind.key, str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
