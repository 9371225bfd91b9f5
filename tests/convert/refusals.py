#!/usr/bin/env python3
"""What convert, pack and audit --record refuse: refusals.py PLUMB STEPS CHECKPOINTS.

Names that are taken, files that are something else, files of the source, folders that take nothing.  Each
time: status 1, one line that names what is wrong, and no byte of anything changed."""
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from runs import PATIENCE, Skip, check, digest, main, part_of, refuse, run, succeed

NOT_PLAIN = "found something that is no plain file, expected a name for a new file"
FOLDER = "found a folder, expected a name for a new file"
IN_SOURCE = "found a place in the source's folder, expected a place outside of it"
OF_SOURCE = "found a file of the source, expected a name for a new file"


def snapshot(folder):
    """Everything below it: kinds, links, contents and times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = (os.readlink(path) if path.is_symlink()
                   else digest(path) if path.is_file() else "")
        found[str(path)] = (about.st_mode, about.st_size, about.st_mtime_ns, about.st_ino, content)
    return found


def refuse_unchanged(folder, *arguments, says):
    before = snapshot(folder)
    refuse(*arguments, says=says)
    after = snapshot(folder)
    check(before == after, f"{arguments[1:]}: changed {before.items() ^ after.items()}")


def make_obstacles(folder):
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "file").write_text("precious")
    (folder / "link").symlink_to("file")
    (folder / "dangling").symlink_to("nowhere")


def test_targets_that_are_taken(plumb, _, checkpoints, folder):
    make_obstacles(folder)
    cases = [("fifo", NOT_PLAIN), ("link", NOT_PLAIN), ("dangling", NOT_PLAIN), ("folder", FOLDER),
             ("folder/", FOLDER), ("folder/..", FOLDER), ("missing/", FOLDER), ("file/", FOLDER),
             ("missing/x", "missing/x.part: open: found No such file or directory"),
             ("file/x", "file/x: found Not a directory"), ("", "found an empty name")]
    for name, says in cases:
        target = f"{folder}/{name}" if name else ""
        for force in [], ["--force"]:
            refuse_unchanged(folder, plumb, "convert", *force, checkpoints / "tiny", target, says=says)
    refuse_unchanged(folder, plumb, "convert", checkpoints / "tiny", folder / "file",
                     says=[folder / "file", "found a file, expected a name for a new file, or "
                           "permission to replace it"])


def test_parts_that_are_none(plumb, _, checkpoints, folder):
    make_obstacles(folder)
    cases = [("fifo", NOT_PLAIN), ("link", NOT_PLAIN), ("dangling", NOT_PLAIN), ("folder", FOLDER),
             ("file", "at 0: found a file that is no part of a conversion, expected no file of that")]
    for name, says in cases:
        (folder / name).rename(folder / f"{name}.part")
        for force in [], ["--force"]:
            refuse_unchanged(folder, plumb, "convert", *force, checkpoints / "tiny", folder / name,
                             says=[folder / f"{name}.part", says])


def test_foreign_part_that_looks_like_one(plumb, _, checkpoints, folder):
    """Whole model files of others are files of others."""
    target = folder / "target"
    for content in [b"GGUF\3\0\0\0" + bytes(100), b"PLUMBPR", bytes(100000)]:
        part_of(target).write_bytes(content)
        refuse_unchanged(folder, plumb, "convert", checkpoints / "tiny", target,
                         says="no part of a conversion")


def test_files_of_the_source(plumb, _, checkpoints, folder):
    source, blobs = folder / "source", folder / "blobs"
    shutil.copytree(checkpoints / "tiny", source)
    blobs.mkdir()
    for name in ["config.json", "model-00002-of-00004.safetensors"]:  # as a cache of models does it
        (source / name).rename(blobs / name)
        (source / name).symlink_to(f"../blobs/{name}")
    (folder / "link").symlink_to("source/config.json")
    os.link(source / "model-00001-of-00004.safetensors", folder / "hard link")
    (source / "below" / "it").mkdir(parents=True)
    (folder / "way in").symlink_to("source/below")
    inside = ["source/config.json", "source/model-00001-of-00004.safetensors",
              "source/model-00002-of-00004.safetensors", "source/../source/config.json",
              "source/new", "source/below/it/new", "way in/new", "way in/../new"]
    links = ["link", "hard link", "blobs/config.json", "blobs/model-00002-of-00004.safetensors"]
    cases = ([(name, IN_SOURCE) for name in inside] + [(name, OF_SOURCE) for name in links]
             + [(name, FOLDER) for name in ("source", "source/", "source/below", "source/new/")])
    for name, says in cases:
        for force in [], ["--force"]:
            refuse_unchanged(folder, plumb, "convert", *force, source, f"{folder}/{name}",
                             says=[f"{folder}/{name}", says])
    for way in source, folder / "way":
        if way != source:
            way.symlink_to("source")
        refuse_unchanged(folder, plumb, "convert", way, f"{source}/new", says=IN_SOURCE)


def test_packing_into_the_source(plumb, _, checkpoints, folder):
    source = folder / "source.gguf"
    succeed(plumb, "convert", "-q", checkpoints / "tiny", source)
    (folder / "link").symlink_to("source.gguf")
    os.link(source, folder / "hard link")
    for name in ["source.gguf", "./source.gguf", "link", "hard link"]:
        for force in [], ["--force"]:
            refuse_unchanged(folder, plumb, "pack", *force, source, f"{folder}/{name}", says=OF_SOURCE)


def test_packing_a_file_named_as_its_part(plumb, _, checkpoints, folder):
    """Packed once more a file stays what it is: it looks just like a finished part of the new one."""
    unpacked, target = folder / "unpacked.gguf", folder / "target"
    succeed(plumb, "convert", "-q", checkpoints / "tiny", unpacked)
    succeed(plumb, "pack", "-q", unpacked, part_of(target))
    refuse_unchanged(folder, plumb, "pack", part_of(target), target, says=[part_of(target), OF_SOURCE])
    part_of(target).rename(folder / "source")
    os.link(folder / "source", part_of(target))
    refuse_unchanged(folder, plumb, "pack", folder / "source", target,
                     says=[part_of(target), OF_SOURCE])


def test_sources_that_are_none(plumb, steps, checkpoints, folder):
    converted, target = folder / "converted.gguf", folder / "target"
    succeed(plumb, "convert", "-q", checkpoints / "tiny", converted)
    succeed(steps, "convert", checkpoints / "tiny", folder / "unfinished", 1, "unnamed")
    (folder / "empty").mkdir()
    os.mkfifo(folder / "fifo")
    unfinished = part_of(folder / "unfinished")
    cases = [("convert", "missing", "missing: found nothing"), ("pack", "missing", "found nothing"),
             ("convert", converted, "found a converted file, expected a released folder"),
             ("pack", checkpoints / "tiny", "found a folder, expected a file that plumb convert wrote"),
             ("convert", "empty", "empty/config.json"), ("pack", "empty", "empty/config.json"),
             ("convert", unfinished, "magic at 0: found an unfinished file"),
             ("pack", unfinished, "magic at 0: found an unfinished file"),
             ("convert", "fifo", "fifo"), ("pack", "fifo", "fifo"),
             ("pack", checkpoints / "tiny" / "config.json", "config.json")]
    for command, source, says in cases:
        refuse_unchanged(folder, plumb, command, folder / source, target, says=says)


def test_one_run_at_a_time(plumb, _, checkpoints, folder):
    target = folder / "target"
    with open(part_of(target), "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refuse_unchanged(folder, plumb, "convert", checkpoints / "tiny", target,
                         says=[part_of(target), "found a file that another run is writing, expected one "
                               "run at a time"])
    succeed(plumb, "convert", "-q", checkpoints / "tiny", target)


def test_folders_that_take_nothing(plumb, _, checkpoints, folder):
    """As somebody else where this is the superuser, who may write anywhere."""
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    source, closed, opened = folder / "source", folder / "closed", folder / "opened"
    shutil.copytree(checkpoints / "tiny", source)
    program = shutil.copy(plumb, folder / "plumb")
    for path, mode in (folder, 0o755), (closed, 0o555), (opened, 0o777):
        path.mkdir(exist_ok=True)
        path.chmod(mode)
    try:
        run(program, "inspect", source, **other)
    except OSError as fault:
        raise Skip(fault) from None
    part_of(opened / "x").write_bytes(b"")
    part_of(opened / "x").chmod(0o444)
    before = snapshot(folder)
    for target in closed / "x", opened / "x":
        refuse(program, "convert", source, target,
               says=[part_of(target), "open: found Permission denied"], **other)
    check(snapshot(folder) == before, "nothing changed")


def test_recorded_while_it_is_written(plumb, _, checkpoints, folder):
    """The program itself writes into the model: the source, opened once the sizes of all files are noted,
    has an odd config, and the complaint goes to a file that is to be recorded."""
    model = folder / "model"
    shutil.copytree(checkpoints / "tiny", model)
    config, written = model / "config.json", model / "generation_config.json"
    config.write_text(config.read_text().replace("{", '{"unknown": 1,', 1))
    written.write_text("{}\n")
    before = sorted(snapshot(folder))
    with open(written, "a", encoding="utf-8") as complaints:
        done = subprocess.run([plumb, "audit", model, "--source", model, "--record"],
                              stdout=subprocess.PIPE, stderr=complaints, text=True, timeout=PATIENCE,
                              check=False)
    said = written.read_text()
    check(done.returncode == 1 and "bytes that were audited" in said, f"not refused: {done.stdout} {said}")
    check(sorted(snapshot(folder)) == before, "nothing is recorded")
    written.write_text("{}\n")
    succeed(plumb, "audit", model, "--source", model, "--record")
    check(len(snapshot(folder)) == len(before) + 1, "recorded once it is left alone")


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")],
         sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
