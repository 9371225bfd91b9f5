#!/usr/bin/env python3
"""Talks with `plumb chat` on a pseudo-terminal: terminal.py PLUMB.
Line editing, dimmed thinking, Ctrl-C and Ctrl-D are there only on a terminal.  Where the system
gives no pseudo-terminal (a minimal chroot has no /dev/ptmx) all of it is skipped."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

PATIENCE = 120  # seconds; sanitizer builds are slow
SKIPPED = 77  # exit status; CMakeLists.txt tells CTest


class Talk:
    """A program on a pseudo-terminal: write what is typed, wait for what appears."""

    def __init__(self, arguments, errors=None, **environment):
        """errors: a descriptor for standard error in place of the terminal."""
        self.seen = b""
        self.before_blank = "" if "NO_COLOR" in environment else "\x1b[0m"  # in a prompt
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            if errors is not None:
                os.dup2(errors, 2)
            os.environ.pop("NO_COLOR", None)
            os.environ.update({"TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})
            os.execv(arguments[0], arguments)

    def read(self):
        ready, _, _ = select.select([self.terminal], [], [], 0.1)
        if not ready:
            return True
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def wait_for(self, text):
        """Everything up to and including `text`; what follows is kept for the next call."""
        wanted, end = text.encode(), time.time() + PATIENCE
        while wanted not in self.seen:
            if time.time() > end or not self.read():
                raise AssertionError(f"{text!r} did not come; there was {self.seen!r}")
        at = self.seen.index(wanted) + len(wanted)
        before, self.seen = self.seen[:at], self.seen[at:]
        return before.decode("utf-8", "replace")

    def wait_for_prompt(self, prompt=">"):
        """The editor takes the terminal over just after it has shown the prompt, and only then is Ctrl-D a
        character.  What came before it."""
        shown = self.wait_for(f"{prompt}{self.before_blank} ")
        end = time.time() + PATIENCE
        while termios.tcgetattr(self.terminal)[3] & termios.ICANON:
            check(time.time() < end, "the editor did not take the terminal over")
            self.read()
        return shown

    def type(self, text):
        os.write(self.terminal, text.encode())

    def status(self):
        end = time.time() + PATIENCE
        while time.time() < end:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"it did not end; there was {self.seen!r}")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def history_file():
    return Path(os.environ["HOME"], ".local/state/plumb/chat_history")


def say(talk, *lines):
    """Each line at a prompt of its own."""
    for line in lines:
        talk.wait_for_prompt()
        talk.type(line + "\n")
    talk.wait_for_prompt()


def leave(talk):
    talk.type("\x04")
    check(talk.status() == 0, "Ctrl-D ends with status 0")


def test_answer_and_end(plumb):
    talk = Talk([plumb, "chat", "--nothink", "--temp", "0"])
    talk.wait_for_prompt()
    talk.type("What is the capital of Nn\x7forway?\n")  # a slip and a backspace
    talk.wait_for("The capital of Norway is Oslo.")
    talk.wait_for_prompt()
    talk.type("\x1b[A\n")  # arrow up: the line again
    talk.wait_for("Norway?")
    talk.wait_for_prompt()
    talk.type("\x04")
    check(talk.status() == 0, "Ctrl-D ends with status 0")


def test_thinking_is_dimmed(plumb):
    talk = Talk([plumb, "chat", "-q", "--temp", "0", "-p", "What is 38 + 47?"])
    shown = talk.wait_for("38 + 47 = 85.")
    check(shown.startswith("\x1b[2m") and "\x1b[0m\r\n\r\n38" in shown, f"dimmed: {shown!r}")
    check(talk.status() == 0, "status 0")


def test_no_color(plumb):
    talk = Talk([plumb, "chat", "-q", "--temp", "0", "-p", "What is 38 + 47?"], NO_COLOR="1")
    shown = talk.wait_for("38 + 47 = 85.")
    check("\x1b" not in shown and shown.startswith("(thinking) "), f"plain: {shown!r}")
    check(talk.status() == 0, "status 0")
    talk = Talk([plumb, "chat", "-q", "--nothink", "-n", "1"], NO_COLOR="1")
    talk.wait_for_prompt()
    talk.type("hello\n/show\n")
    shown = talk.wait_for("assistant:\r\n")
    check("\x1b[0m" not in shown and "\x1b[1" not in shown, f"plain: {shown!r}")
    talk.wait_for_prompt()
    leave(talk)


def test_dumb_terminal(plumb):
    """One that obeys nothing is told nothing."""
    talk = Talk([plumb, "chat", "-q", "--nothink", "-n", "1"], TERM="dumb", NO_COLOR="1")
    talk.wait_for_prompt()
    talk.type("hello\n")
    shown = talk.wait_for_prompt()
    check("\x1b" not in shown, f"plain: {shown!r}")
    leave(talk)


def test_interrupt_stops_one_answer(plumb):
    talk = Talk([plumb, "chat", "--nothink", "--temp", "0"])
    talk.wait_for_prompt()
    talk.type("Tell me a story about a cat named Emma.\n")
    talk.wait_for("Once upon")
    talk.type("\x03")
    talk.wait_for("[stopped]")
    talk.wait_for("tokens/s")
    talk.wait_for_prompt()
    talk.type("/stats\n")
    talk.wait_for("1 turn")
    talk.wait_for_prompt()
    talk.type("half a line\x03")
    talk.wait_for("Ctrl-C again")
    talk.wait_for_prompt()
    talk.type("\x03")
    check(talk.status() == 0, "two Ctrl-C at the prompt end with status 0")


def test_interrupt_clears_the_line(plumb):
    """As often as there is something to clear; only an empty line is left."""
    talk = Talk([plumb, "chat", "-q"])
    for line in ("/quit", "/quit", '"""\nof a block', "half\\\nanother half"):
        talk.wait_for_prompt()
        for part in line.split("\n")[:-1]:
            talk.type(part + "\n")
            talk.wait_for_prompt(".")
        talk.type(line.split("\n")[-1])
        talk.wait_for(line[-4:])
        talk.type("\x03")
        talk.wait_for("Ctrl-C again")
    talk.wait_for_prompt()
    talk.type("/stats\n")
    talk.wait_for("0 turns")
    talk.wait_for_prompt()
    leave(talk)


def test_history_is_kept(plumb):
    chat = [plumb, "chat", "-q", "--nothink", "-n", "1", "--temp", "0"]
    file = history_file()
    talk = Talk(chat)
    say(talk, "What is the capital of Norway?", "/seed 5", "/seed 5")
    talk.type("one\\\n")
    talk.wait_for_prompt(".")
    talk.type("\n")
    talk.wait_for_prompt()
    leave(talk)
    kept = "plumb-chat-history 1\nWhat is the capital of Norway?\n/seed 5\n"
    check(file.read_text() == kept + "one\\n\n", f"{file.read_text()!r}")
    check(file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700, "others may read")
    check(os.listdir(file.parent) == [file.name], f"left over: {os.listdir(file.parent)}")


def test_history_comes_back(plumb):
    chat = [plumb, "chat", "-q", "--nothink", "-n", "1", "--temp", "0"]
    file = history_file()
    file.parent.mkdir(parents=True)
    kept = 'plumb-chat-history 1\n"""\\nfirst\\n/second \\\\\\n"""\n/seed 5\n'
    file.write_text(kept)
    talk = Talk([*chat, "--no-history"])
    say(talk, "/seed 7")
    leave(talk)
    check(file.read_text() == kept, "--no-history keeps nothing")
    talk = Talk(chat)
    talk.wait_for_prompt()
    talk.type("\x1b[A\x1b[A\n")  # two lines back
    talk.wait_for_prompt()
    talk.type("/show\n")
    talk.wait_for("user:\x1b[0m\r\nfirst\r\n/second \\\r\n\r\n")
    talk.wait_for_prompt()
    leave(talk)
    other = Path(os.environ["HOME"], "other")
    for option, folder in (["--history", f"{other}/history"], other), ([], other / "state"):
        folder.mkdir()
        talk = Talk([*chat, *option], XDG_STATE_HOME=str(other / "state"))
        say(talk, "/seed 9")
        leave(talk)
    for found in (other / "history", other / "state/plumb/chat_history"):
        check(found.read_text() == "plumb-chat-history 1\n/seed 9\n", f"{found.read_text()!r}")


def test_pasted_text_is_one_message(plumb):
    talk = Talk([plumb, "chat", "-q", "--nothink", "-n", "1", "--temp", "0"])
    talk.wait_for_prompt()
    talk.type("Read: \x1b[200~/one\n\ttwo\\\r\x1b[31m\x1b[201~three\n")
    talk.wait_for_prompt()
    talk.type("/show\n")
    talk.wait_for("/show\r\n")
    shown = talk.wait_for("assistant:")
    check("Read: /one\r\n\ttwo\\\r\n[31mthree\r\n" in shown, f"{shown!r}")
    talk.wait_for_prompt()
    talk.type("\x1b[A\x1b[A\n")  # it comes back as a whole
    talk.wait_for_prompt()
    talk.type("/stats\n")
    talk.wait_for("2 turns")
    talk.wait_for_prompt()
    leave(talk)


# What a shell does: it runs a program in a process group of its own, in the foreground, tells of the terminal when
# that stops, and lets it go on.
SHELL = """
import os, signal, sys, termios
pid = os.fork()
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    status = os.waitpid(pid, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
    modes = termios.tcgetattr(0)[3]
    os.tcsetpgrp(0, os.getpgrp())
    print("stopped,", "as it was" if modes & termios.ICANON and modes & termios.ECHO else "the editor's", flush=True)
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
"""


def test_pause(plumb):
    """Ctrl-Z at the prompt leaves the terminal as it was; the line is there again afterwards, and edited on.  In an
    answer it stops what computes."""
    talk = Talk([sys.executable, "-c", SHELL, plumb, "chat", "-q", "--nothink", "--temp", "0"])
    talk.wait_for_prompt()
    for typed in ("/sta", ""):  # twice: it is caught again
        talk.type(typed)
        talk.wait_for(typed)
        talk.type("\x1a")
        talk.wait_for("stopped, as it was")
        shown = talk.wait_for_prompt()
        check("\x1b[?2004h" in shown, f"pasted text is in brackets again: {shown!r}")
        talk.wait_for("/sta")
    talk.type("x\x7fts\n")  # a slip and a backspace, which only the editor takes
    talk.wait_for("0 turns")
    talk.wait_for_prompt()
    talk.type("Tell me a story about a cat named Emma.\n")
    talk.wait_for("Once upon")
    talk.type("\x1a")
    talk.wait_for("stopped, as it was")
    talk.wait_for("truth")
    talk.wait_for_prompt()
    leave(talk)


def test_keys(plumb):
    """As terminals of several kinds send them, whatever TERM says."""
    talk = Talk([plumb, "chat", "-q", "--nothink", "-n", "1"])
    talk.wait_for_prompt()
    talk.type("two four" + "\x1b[1;5D" + "three " + "\x1b[1~" + "xone " + "\x1b[4~" + " five" + "\x1b[H" + "\x1b[3~"
              + "\x1b[2~" + "\x1b[1;5C\x1b[1;5C" + "," + "\n")
    talk.wait_for_prompt()
    talk.type("/show\n")
    talk.wait_for("/show\r\n")
    shown = talk.wait_for("assistant:")
    check("one two, three four five\r\n" in shown or "one two ,three four five\r\n" in shown, f"{shown!r}")
    talk.wait_for_prompt()
    leave(talk)


def test_interrupt_before_the_answer(plumb):
    talk = Talk([plumb, "chat", "--nothink", "--prefill-chunk", "1", "-n", "1"])
    said = talk.wait_for_prompt()
    check("/help lists the commands" in said, f"{said!r}")
    talk.type("\x1b[200~" + "the quick brown fox " * 500 + "\x1b[201~\n")
    talk.wait_for("reading: ")
    talk.type("\x03")
    talk.wait_for("[stopped before the answer; the message is not kept]")
    talk.wait_for_prompt()
    talk.type("/stats\n")
    talk.wait_for("0 turns")
    talk.wait_for_prompt()
    talk.type("Hi.\n")
    talk.wait_for("answer 1 token, ")
    talk.wait_for_prompt()
    leave(talk)


def test_completion(plumb):
    home = Path(os.environ["HOME"])
    (home / "folder").mkdir()
    for name in ("emma-1", "emma-2", ".hidden"):
        (home / "folder" / name).touch()
    talk = Talk([plumb, "chat", "-q"])
    talk.wait_for_prompt()
    talk.type("/st\t\n")
    talk.wait_for("0 turns")
    talk.wait_for_prompt()
    talk.type("/s\t")
    talk.wait_for("\r\nsave    seed    show    stats   system\r\n")
    fcntl.ioctl(talk.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    talk.type("\t")
    talk.wait_for("\r\nsave    seed\r\nshow    stats\r\nsystem\r\n")
    fcntl.ioctl(talk.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    talk.type("a\t~/fo\te\t")
    talk.wait_for("mma-")  # what both have in common
    talk.type("\t")
    talk.wait_for("emma-1  emma-2\r\n")
    talk.type("3\n")
    talk.wait_for(f"saved {home}/folder/emma-3: 0 turns")
    talk.wait_for_prompt()
    talk.type("/load ~/folder/\t3\t\n")
    talk.wait_for(f"loaded {home}/folder/emma-3: 0 turns")
    talk.wait_for_prompt()
    leave(talk)


def test_window_of_another_size(plumb):
    """The line is drawn for the size that the window has, without a signal to tell of it."""
    talk = Talk([plumb, "chat", "-q"])
    talk.wait_for_prompt()
    fcntl.ioctl(talk.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    talk.type("x" * 40)
    talk.wait_for("x" * 28 + " \b" + "x" * 12)  # a blank makes the terminal go to the next line
    talk.type("\x03")
    talk.wait_for_prompt()
    leave(talk)


def full_pipe():
    ours, others = os.pipe()
    os.set_blocking(others, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(others, b"-" * size)
        except BlockingIOError:
            pass
    os.set_blocking(others, True)
    return ours, others


def test_interrupt_while_a_command_runs(plumb):
    """It is for the prompt that follows.  The command cannot get there before: a pipe that is full
    holds up its complaint."""
    ours, errors = full_pipe()
    talk = Talk([plumb, "chat", "-q"], errors)
    os.close(errors)
    talk.wait_for_prompt()
    talk.type("/think x\n")
    talk.wait_for("/think x\r\n")
    os.kill(talk.pid, signal.SIGINT)
    said, end = b"", time.time() + PATIENCE
    while b"Ctrl-C again" not in said:
        check(time.time() < end, f"the interruption is lost; there was {said.lstrip(b'-')}")
        if select.select([ours], [], [], 0.1)[0]:
            said += os.read(ours, 65536)
    talk.wait_for_prompt()
    talk.type("\x04")
    check(talk.status() == 0, "Ctrl-D ends with status 0")
    os.close(ours)


def test_no_interrupt_is_lost(plumb):
    """A signal at another place each time: while a line is read, obeyed, or waited for again.  What it
    leaves of the line "/" is harmless: an unknown command or an empty message."""
    talk = Talk([plumb, "chat", "-q", "--nothink"])
    talk.wait_for_prompt()
    for round in range(200):
        talk.type("/\n")
        signalled = time.perf_counter() + round * 5e-6
        while time.perf_counter() < signalled:
            pass
        os.kill(talk.pid, signal.SIGINT)
        talk.wait_for("Ctrl-C again")
        talk.type("/think x\n")
        talk.wait_for("expected 0 to 100")
    talk.type("/quit\n")
    check(talk.status() in (0, 1), "/quit ends it; 1 tells of an unknown command")


def test_interrupt_ends_one_shot(plumb):
    talk = Talk([plumb, "chat", "-q", "--nothink", "--temp", "0", "-p", "Tell me a story about a cat."])
    talk.wait_for("Once")
    talk.type("\x03")
    check(talk.status() == 130, "status 130")


def test_utf8_editing(plumb):
    talk = Talk([plumb, "chat", "-q", "--nothink", "--temp", "0", "-n", "1"])
    talk.wait_for_prompt()
    talk.type("é日\x7f\x7f/quit\n")  # two characters taken back, five bytes
    check(talk.status() == 0, "/quit ends with status 0")


def test_control_bytes_are_shown_not_obeyed(plumb):
    text = "a\x1b[31mb\u009b2Jc\x7fd"
    ids = subprocess.run([plumb, "tokenize", text], capture_output=True, text=True).stdout.split()
    check(ids, "the text has ids")
    piped = subprocess.run([plumb, "tokenize", "--decode", *ids], capture_output=True).stdout
    check(piped == text.encode(), f"a pipe gets the text as it is: {piped!r}")
    talk = Talk([plumb, "tokenize", "--decode", *ids])
    shown = talk.wait_for("d\r\n")
    check(shown == "a?[31mb?2Jc?d\r\n", f"a terminal gets it made harmless: {shown!r}")
    check(talk.status() == 0, "status 0")


def lack():
    """Why there is no pseudo-terminal here, or None."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as fault:
        return fault.strerror or str(fault)
    return None


def main():
    missing = lack()
    if missing:
        print(f"skipped: no pseudo-terminal here ({missing})\n0 passed, 0 failed")
        return SKIPPED
    os.environ.pop("XDG_STATE_HOME", None)
    tests = [f for name, f in globals().items() if name.startswith("test_") and name in (sys.argv[2:] or name)]
    failed = 0
    for test in tests:
        try:
            with tempfile.TemporaryDirectory() as home:  # with the history of this test alone
                os.environ["HOME"] = home
                test(sys.argv[1])
            print("ok  ", test.__name__)
        except AssertionError as fault:
            failed += 1
            print("FAIL", test.__name__, fault)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
