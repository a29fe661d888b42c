"""The entry point: `yolo-fs` and `python -m yolo_fs`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import gc
import os
import sys
import time

from yolo_fs.cli.entry import finish, run_here
from yolo_fs.system.ask import IN_ASCII, ends_soon, lives_long, register_signs, run_by_observer

COLLECTED_AFTER = 500_000
"""Allocation threshold of the garbage collector for short-lived commands. Imports alone allocate
many objects, and hardly any of them is garbage."""

_AGAIN_S = 0.01
_STOPPING = (_signal.SIGINT, _signal.SIGTERM)


def start() -> int:
    """Run the command line as the main program of a process.

    Most commands end the process themselves; the exit code of the others is returned.
    """
    if lives_long(sys.argv[1:]):
        return main()
    if ends_soon(sys.argv[1:]):
        gc.set_threshold(COLLECTED_AFTER)
    code = main()
    flags = sys.flags
    threading = sys.modules.get("threading")
    has_threads = threading is not None and threading.active_count() > 1
    if not (has_threads or flags.inspect or flags.interactive or flags.dev_mode):
        try:
            finish()
        except (OSError, ValueError):
            return code
        os._exit(code & 0xFF)
    return code


def main() -> int:
    """Run the command line and return its exit code."""
    _open_closed_streams()
    _wait_at_streams()
    _print_every_character()
    _unblock_signals()
    _find_programs_in_fixed_folders()
    arguments = sys.argv[1:]
    try:
        if arguments[:1] != ["hook"]:  # most of whose answers cost less than to ask for them
            code = run_by_observer(arguments)
            if code is not None:
                return code
            _end_as_by_ctrl_c()
        return run_here(arguments)
    except KeyboardInterrupt:  # before a command had begun: it ends by Ctrl-C itself
        return 130


def _unblock_signals() -> None:
    """Unblock all signals and restore SIGCHLD, which are inherited from the parent process.

    While SIGCHLD is ignored, the exit status of a git process is lost.
    """
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)


def _find_programs_in_fixed_folders() -> None:
    """Leave out of PATH what depends on the folder that somebody works in: a repository would name
    the programs there, such as its own git.
    """
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    fixed = [folder for folder in named if os.path.isabs(folder)]
    if fixed != named:
        os.environ["PATH"] = os.pathsep.join(fixed or [os.defpath])


def _end_as_by_ctrl_c() -> None:
    """Make SIGTERM and SIGHUP end a command as Ctrl-C does.

    The command can then clean up: a host that loses patience sends one of them. A signal that is
    ignored, as under nohup, stays ignored.
    """
    for number in (_signal.SIGTERM, _signal.SIGHUP):
        if _signal.getsignal(number) == _signal.SIG_DFL:
            _signal.signal(number, _signal.default_int_handler)
    main_thread = _thread.get_ident()
    sys.unraisablehook = lambda lost: _interrupt_again(main_thread, lost)


def _interrupt_again(main_thread: int, lost: sys.UnraisableHookArgs) -> None:
    """Stop once more where the first time came in a finalizer: Python raises nothing out of one."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    heard = (
        number for number in _STOPPING if _signal.getsignal(number) == _signal.default_int_handler
    )
    number = next(heard, None)
    if number is None:
        return

    def send() -> None:
        time.sleep(_AGAIN_S)  # as long as the finalizer runs, it would be lost again
        _signal.pthread_kill(main_thread, number)

    # `threading` would wait here for the thread, which is late where the machine is loaded.
    _thread.start_new_thread(send, ())


def _open_closed_streams() -> None:
    """Reopen closed standard streams on /dev/null, so that no other file gets their descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)  # open to the end, like the streams themselves
            setattr(sys, name, open(nothing, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _wait_at_streams() -> None:
    """Let the standard streams wait for whoever is at their other end.

    A parent with an event loop may hand over pipes that do not wait. A question that comes late
    would be taken for none, and an answer would end where the pipe is full. Shells do the same.
    """
    for descriptor in (0, 1, 2):
        if not os.get_blocking(descriptor):
            os.set_blocking(descriptor, True)


def _print_every_character() -> None:
    """Let both streams print our signs in ASCII, and escape the rest, where they have no others.

    Where a program names the encoding, with PYTHONIOENCODING, every character can be read back.
    """
    register_signs()
    errors = "backslashreplace" if "PYTHONIOENCODING" in os.environ else IN_ASCII
    for stream in (sys.stdout, sys.stderr):
        if stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors=errors)  # type: ignore[union-attr]


if __name__ == "__main__":
    sys.exit(start())
