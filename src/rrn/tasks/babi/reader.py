"""The official bAbI files, from a folder or a tar archive."""

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from rrn.errors import InputError, as_input_error, quote, shorten
from rrn.io.files import read_bytes
from rrn.tasks.babi.stories import TASKS, Question, Story

SPLITS = ("train", "valid", "test")
VARIANTS = ("en-valid-10k", "en-valid", "en-10k", "en")
"""Folders of the official release in order of preference. Only the ``en-valid`` folders have valid files."""
MEMBER_BYTES, ARCHIVE_BYTES, MOST_MEMBERS = 64 << 20, 1 << 30, 10_000

FILE_NAME = re.compile(r"qa(\d{1,2})(?:_[^/]*)?_(train|valid|test)\.txt")


def parse_stories(text: str, task: int, source: str) -> list[Story]:
    """The stories in the text of a file; ``source`` is the name of the file for error messages."""
    stories: list[Story] = []
    facts: list[str] = []
    questions: list[Question] = []
    fact_of_line: dict[str, int] = {}
    previous = 0
    lines = text.split("\n")
    form = "'<number> <question><tab><answer><tab><supporting lines>'"
    for line_number, line in enumerate(lines, start=1):
        at = f"{source}, line {line_number}"
        if not line.strip():
            if any(later.strip() for later in lines[line_number:]):
                raise InputError(f"{at}: empty; every line is '<number> <sentence>'")
            break
        number_text, _, rest = line.partition(" ")
        if not (number_text.isascii() and number_text.isdigit()) or not rest.strip():
            raise InputError(f"{at}: {quote(line)} is not '<number> <sentence>'")
        number = int(number_text[:9])
        if number == 1:
            facts, questions, fact_of_line = [], [], {}
            stories.append(Story(task, facts, questions))
        elif number != previous + 1 or previous == 0:
            expected = f"1 or {previous + 1}" if previous else "1"
            raise InputError(f"{at}: numbered {number} where {expected} should follow")
        previous = number
        fields = rest.rstrip("\r").split("\t")
        sentence = fields[0].strip()
        if len(fields) == 1:
            if sentence.endswith("?"):
                raise InputError(f"{at}: a question without tabs; it should read {form}")
            fact_of_line[str(number)] = len(facts)
            facts.append(sentence)
            continue
        if len(fields) != 3 or not sentence or not fields[1].strip():
            raise InputError(f"{at}: {len(fields)} fields, or an empty one; a question reads {form}")
        support = []
        for supporting in fields[2].split():
            if supporting not in fact_of_line:
                raise InputError(f"{at}: supporting line {quote(supporting)} is not an earlier fact")
            support.append(fact_of_line[supporting])
        questions.append(Question(sentence, fields[1].strip(), tuple(support), len(facts)))
    if not any(story.questions for story in stories):
        raise InputError(f"{source}: contains no question; expected a bAbI file")
    return stories


def choose_folder(found: dict[str, dict[int, str]], source: Path, split: str) -> dict[int, str]:
    """Choose among the folders with files of the split: task number → file."""
    if not found:
        raise InputError(f"{source}: no bAbI {split} files in it; they are named like qa1_{split}.txt")
    if len(found) == 1:
        return next(iter(found.values()))
    by_name = {PurePosixPath(folder).name: files for folder, files in found.items()}
    for known in VARIANTS:
        if known in by_name:
            return by_name[known]
    raise InputError(f"{source}: several folders hold {split} files; name one of {', '.join(sorted(found))}")


def group_by_folder(names: Iterable[str], split: str, source: Path) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for name in sorted(names):
        path = PurePosixPath(name)
        match = FILE_NAME.fullmatch(path.name)
        if match is None or match[2] != split or int(match[1]) not in TASKS:
            continue
        files = found.setdefault(str(path.parent), {})
        if int(match[1]) in files:
            raise InputError(f"{source}: {files[int(match[1])]} and {name} are both task {match[1]}; remove one")
        files[int(match[1])] = name
    return found


def select_tasks(files: dict[int, str], tasks: Iterable[int] | None, source: Path, split: str) -> dict[int, str]:
    if tasks is None:
        return dict(sorted(files.items()))
    wanted = list(tasks)
    missing = [task for task in wanted if task not in files]
    if missing:
        raise InputError(f"{source}: no {split} file of task {', '.join(map(str, missing))}")
    return {task: files[task] for task in wanted}


def read_babi(source: str | Path, split: str, tasks: Iterable[int] | None = None) -> dict[int, list[Story]]:
    """The stories of a split by task: all tasks with a file, or exactly ``tasks``.

    ``source`` is a tar archive or a folder with files such as ``qa1_train.txt``, directly or in subfolders, as in the
    official release; of several subfolders, the first of `VARIANTS` with files of the split.
    """
    source = Path(source)
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}; expected one of {', '.join(SPLITS)}")
    if source.is_dir():
        names = [path.relative_to(source).as_posix() for path in source.rglob("qa*.txt") if path.is_file()]
        files = choose_folder(group_by_folder(names, split, source), source, split)
        texts = {}
        for task, name in select_tasks(files, tasks, source, split).items():
            with as_input_error(f"{source / name}: cannot be read"):
                texts[task] = (str(source / name), read_bytes(source / name, MEMBER_BYTES))
    elif source.is_file():
        with as_input_error(f"{source}: not a readable tar archive"), tarfile.open(source) as archive:
            members = _members(archive, source)
            files = choose_folder(group_by_folder(members, split, source), source, split)
            chosen = select_tasks(files, tasks, source, split)
            texts = {task: (f"{source}:{name}", _content(archive, members[name])) for task, name in chosen.items()}
    else:
        raise InputError(f"{source}: no such folder or archive")
    stories = {}
    for task, (name, content) in texts.items():
        with as_input_error(f"{name}: not a text file in UTF-8"):
            stories[task] = parse_stories(content.decode(), task, name)
    return stories


def _members(archive: tarfile.TarFile, source: Path) -> dict[str, tarfile.TarInfo]:
    """The files of an archive by name, within the size limits."""
    members: dict[str, tarfile.TarInfo] = {}
    for member in archive:
        if member.size > MEMBER_BYTES or member.offset_data > ARCHIVE_BYTES or len(members) > MOST_MEMBERS:
            raise InputError(f"{source}: {quote(member.name)} exceeds the size limits of a bAbI archive")
        if member.isfile():
            members[member.name] = member
    rest = archive.fileobj
    while rest is not None and rest.tell() <= ARCHIVE_BYTES and rest.read(1 << 20):
        pass  # read to the end, to verify the checksum of a compressed file
    return members


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    content = file.read() if file else b""
    if len(content) != member.size:
        raise ValueError(f"{shorten(member.name)} is cut off")
    return content
