"""The system calls that a confined child may not make, as a classic BPF program for the kernel.

Starting a process or a program ends the child with SIGSYS, which the verdict names. Everything else that reaches
out of the process (sockets, signals, other memory, mounts, clocks, its own limits) is refused with EPERM.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct
import sys
from dataclasses import dataclass

CLONE_THREAD = 0x10000
PR_SET_PDEATHSIG, PR_SET_SECCOMP = 1, 22

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _TEST, _GIVE = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16  # offsets in what the filter sees; argument n is at 16 + 8 n


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_REFUSED = _names(
    "socket socketpair setpgid setsid kill tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd "
    "pidfd_send_signal process_vm_readv process_vm_writev process_madvise kcmp io_uring_setup perf_event_open "
    "bpf userfaultfd add_key request_key keyctl mount umount2 pivot_root chroot unshare setns open_by_handle_at "
    "init_module finit_module delete_module reboot swapon clock_settime settimeofday adjtimex clock_adjtime "
    "fanotify_init quotactl acct syslog"
)
_FATAL = _names("fork vfork execve execveat ptrace")


@dataclass(frozen=True)
class _Machine:
    """System call numbers of one architecture, by name. A call that it lacks has none."""

    audit: int
    number: dict[str, int]


@functools.lru_cache(maxsize=1)
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def _numbers(text: str) -> dict[str, int]:
    words = text.split()
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


_NEW = (  # the same number everywhere
    " pidfd_send_signal 424 io_uring_setup 425 pidfd_open 434 clone3 435 pidfd_getfd 438 process_madvise 440"
)
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        _numbers(
            "socket 41 socketpair 53 clone 56 fork 57 vfork 58 execve 59 kill 62 ptrace 101 syslog 103 setpgid 109 "
            "setsid 112 rt_sigqueueinfo 129 pivot_root 155 prctl 157 adjtimex 159 setrlimit 160 chroot 161 acct 163 "
            "settimeofday 164 mount 165 umount2 166 swapon 167 reboot 169 init_module 175 delete_module 176 "
            "quotactl 179 tkill 200 clock_settime 227 tgkill 234 add_key 248 request_key 249 keyctl 250 unshare 272 "
            "rt_tgsigqueueinfo 297 perf_event_open 298 fanotify_init 300 prlimit64 302 open_by_handle_at 304 "
            "clock_adjtime 305 setns 308 process_vm_readv 310 process_vm_writev 311 kcmp 312 finit_module 313 bpf 321 "
            "execveat 322 userfaultfd 323" + _NEW
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        _numbers(
            "umount2 39 mount 40 pivot_root 41 chroot 51 quotactl 60 acct 89 unshare 97 init_module 105 "
            "delete_module 106 clock_settime 112 syslog 116 ptrace 117 kill 129 tkill 130 tgkill 131 rt_sigqueueinfo 138 "
            "reboot 142 setpgid 154 setsid 157 setrlimit 164 prctl 167 settimeofday 170 adjtimex 171 socket 198 "
            "socketpair 199 add_key 217 request_key 218 keyctl 219 clone 220 execve 221 swapon 224 "
            "rt_tgsigqueueinfo 240 perf_event_open 241 prlimit64 261 fanotify_init 262 open_by_handle_at 265 "
            "clock_adjtime 266 setns 268 process_vm_readv 270 process_vm_writev 271 kcmp 272 finit_module 273 bpf 280 "
            "execveat 281 userfaultfd 282" + _NEW
        ),
    ),
}


_OWN_ID = 0x7FFFFFF1  # stands for the child's process id, which is known only in the child


@functools.lru_cache(maxsize=2)
def _program(processes: bool) -> bytes:
    """The filter for this machine, empty where none is known. ``processes``: the child may start programs."""
    machine = _MACHINES.get(platform.machine())
    if machine is None or not sys.platform.startswith("linux"):
        return b""
    known = machine.number
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, machine.audit), (_GIVE, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, 0x40000000), (_GIVE, 0, 0, _KILL),
    ]  # fmt: skip
    for name in _REFUSED:
        code += [(_EQUAL, 0, 1, known[name]), (_GIVE, 0, 0, _ERRNO | _EPERM)]
    # A signal to oneself is how abort() ends; to anybody else it is refused.
    code += [(_EQUAL, 0, 4, known["tgkill"]), (_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 1, _OWN_ID)]
    code += [(_GIVE, 0, 0, _ALLOW), (_GIVE, 0, 0, _ERRNO | _EPERM)]
    # It ends with its parent: that cannot be taken back.
    code += [(_EQUAL, 0, 4, known["prctl"]), (_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 1, PR_SET_PDEATHSIG)]
    code += [(_GIVE, 0, 0, _ERRNO | _EPERM), (_GIVE, 0, 0, _ALLOW)]
    # Limits may be read (no new limit is given), never set; but sanitizers set those of stacks and core dumps.
    stack, core, second, third = 3, 4, _FIRST + 8, _FIRST + 16
    code += [(_EQUAL, 0, 5, known["setrlimit"]), (_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, stack)]
    code += [(_EQUAL, 0, 1, core), (_GIVE, 0, 0, _ALLOW), (_GIVE, 0, 0, _ERRNO | _EPERM)]
    code += [(_EQUAL, 0, 9, known["prlimit64"]), (_LOAD, 0, 0, second), (_EQUAL, 5, 0, stack)]
    code += [(_EQUAL, 4, 0, core), (_LOAD, 0, 0, third), (_EQUAL, 0, 3, 0)]
    code += [(_LOAD, 0, 0, third + 4), (_EQUAL, 0, 1, 0), (_GIVE, 0, 0, _ALLOW)]
    code += [(_GIVE, 0, 0, _ERRNO | _EPERM)]
    if processes:
        code += [(_EQUAL, 0, 1, known["ptrace"]), (_GIVE, 0, 0, _ERRNO | _EPERM)]
    else:
        for name in _FATAL:
            code += [(_EQUAL, 0, 1, known[name]), (_GIVE, 0, 0, _KILL)]
        # clone3 hides its flags in memory; "not implemented" makes libc fall back to clone.
        code += [(_EQUAL, 0, 1, known["clone3"]), (_GIVE, 0, 0, _ERRNO | _ENOSYS)]
        code += [(_EQUAL, 0, 4, known["clone"]), (_LOAD, 0, 0, _FIRST), (_TEST, 0, 1, CLONE_THREAD)]
        code += [(_GIVE, 0, 0, _ALLOW), (_GIVE, 0, 0, _KILL)]
    code.append((_GIVE, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def prepare() -> None:
    """Build the filters once, in the server, for all of its children."""
    libc()
    for processes in (False, True):
        _program(processes)


def install(processes: bool) -> bool:
    """Filter this thread and those that it starts, for good. Whether that worked; needs no-new-privileges."""
    program = _program(processes).replace(struct.pack("I", _OWN_ID), struct.pack("I", os.getpid()))
    if not program:
        return False
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    descriptor = Program(len(program) // 8, ctypes.addressof(buffer))
    mode, zero = ctypes.c_ulong(2), ctypes.c_ulong(0)
    return int(libc().prctl(PR_SET_SECCOMP, mode, ctypes.byref(descriptor), zero, zero)) == 0
