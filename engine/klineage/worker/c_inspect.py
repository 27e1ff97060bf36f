"""What a C kernel really is: its text after the preprocessor, and the machine code that came out.

Reading the source alone can be fooled by macros, so the same rules are applied to what the compiler saw and
to what it made. Everything here is an allow-list, except the instructions, of which there are too many.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from klineage.worker.faults import KernelFault

VERSION = 5  # part of the key of every kept build: builds that passed older rules are inspected again

Run = Callable[[list[str]], str]  # a command to its standard output; raises WorkerError when it cannot run


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HEADERS = _words(
    "stdint stddef stdlib string math stdbool stdalign float limits assert tgmath complex inttypes stdio omp "
    "arm_neon arm_sve arm_acle"
)
_ATTRIBUTES = _words(
    """
    aligned always_inline artificial assume assume_aligned alloc_align alloc_size cold const deprecated ext_vector_type
    fallthrough flatten gnu_inline hot inline leaf may_alias mode malloc maybe_unused nodiscard noinline noclone noipa
    nonnull nonstring noreturn nothrow packed pure restrict returns_nonnull transparent_union unsequenced reproducible
    unused vector_size warn_unused_result warn_if_not_aligned access no_sanitize simd
    """
)
_PRAGMA = re.compile(
    r"(omp\b|GCC\s+(unroll|ivdep|novector|diagnostic)\b|STDC\s+(FP_CONTRACT|CX_LIMITED_RANGE)\b|clang\s+(loop|fp|diagnostic)\b|"
    r"unroll\b|nounroll\b|ivdep\b|vector\b|simd\b|once\b|(push|pop)_macro\b|pack\b|message\b)"
)
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_ASSEMBLY = re.compile(r"\b(asm|__asm|__asm__)\b")
_DIRECTIVE = re.compile(
    rb"^[ \t]*(?:#|%:|\?\?=)[ \t]*(embed|include_next|import|ident|sccs|assert|line|\d+)\b", re.MULTILINE
)
_BUILTIN = re.compile(
    r"\b(__builtin_(return_address|frame_address|extract_return_addr|frob_return_addr|eh_return|unwind_init|dwarf_\w+|init_dwarf\w*|"
    r"apply\w*|return|setjmp|longjmp|(set_)?thread_pointer|__clear_cache|ia32_(rdtscp?|rdpmc|ldmxcsr|f?xrstor\w*))|_mm_setcsr|_?_rdtscp?)\b"
)
_MARKER = re.compile(r'^# \d+ "(?P<file>[^"]*)"(?P<flags>[ \d]*)$')
_NAME = re.compile(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)?")

_PLAIN = _words(
    """
    malloc calloc realloc aligned_alloc posix_memalign free abort exit _exit abs labs llabs div ldiv lldiv qsort bsearch
    memcpy memmove memset memcmp memchr mempcpy strlen strcmp strncmp strchr strcpy strncpy bcmp bzero
    printf puts putchar snprintf fputs fputc fwrite __printf_chk __snprintf_chk __assert_fail __assert __errno_location
    __stack_chk_fail __memcpy_chk __memset_chk __memmove_chk __strcpy_chk __tls_get_addr __cxa_finalize
    __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable _GLOBAL_OFFSET_TABLE_
    """
)
_MATH = re.compile(
    r"(?:__)?c?(a?(sin|cos|tan)h?|atan2|exp(2|10|m1)?|log(2|10|1p|b)?|ilogb|pow|sqrt|cbrt|hypot|fabs|abs|arg|imag|real|conj|proj|"
    r"floor|ceil|round(even)?|trunc|l?l?rint|nearbyint|ll?round|fmod|remainder|remquo|modf|frexp|ldexp|scalbl?n|copysign|nan|"
    r"next(after|toward)|fdim|fmax|fmin|fma|erfc?|[tl]gamma|sincos|j[01n]|y[01n]|signbit|isnan|isinf|finite|fpclassify)"
    r"(f|l|f16|f32|f64)?(_finite)?"
)
_OPENMP = re.compile(r"(GOMP|GOACC|__kmpc)_\w+|omp_(?!get_wti)\w+")  # but no clock
_VECTOR_MATH = re.compile(r"_ZGV[a-z][NM]\d+v+_\w+")
_LIBRARY = re.compile(
    r"(libc|libm|libmvec|libgomp|libomp|libiomp5|libgcc_s|ld-linux[\w-]*|libpthread)\.so[.\d]*"
)
_LOADED_CODE = _words("INIT FINI INIT_ARRAY FINI_ARRAY PREINIT_ARRAY TEXTREL AUDIT DEPAUDIT FILTER AUXILIARY")
_INSTRUCTIONS = {
    "calls the system by itself": _words("syscall sysenter sysexit int svc hvc smc"),
    "changes how the whole process computes": _words(
        "ldmxcsr vldmxcsr fxrstor fxrstor64 xrstor xrstor64 xrstors"
    ),
    "reads a clock": _words("rdtsc rdtscp rdpmc"),
    "changes what the process may reach": _words("wrfsbase wrgsbase wrpkru xsetbv"),
}
_REGISTERS = re.compile(r"\b(cntvct\w*|cntpct\w*|pmccntr\w*|fpcr)\b", re.IGNORECASE)


def check_source(source: bytes, expanded: str, name: str) -> None:
    """Judge a file and what the preprocessor made of it. Raises KernelFault("source", ...)."""
    directive = _DIRECTIVE.search(re.sub(rb"\\\r?\n", b"", source))
    if directive:
        raise KernelFault("source", f"uses #{directive.group(1).decode()}, which no kernel needs")
    text = _own_text(expanded, name)
    for line in text.splitlines():
        pragma = re.match(r"\s*#\s*pragma\s+(.*)", line)
        if pragma and not _PRAGMA.match(pragma.group(1)):
            raise KernelFault(
                "source", f"#pragma {pragma.group(1).strip()[:60]} changes how the file is compiled"
            )
    bare = _LITERAL.sub('""', text)
    if _ASSEMBLY.search(bare):
        raise KernelFault("source", "contains assembly once its macros are expanded; use intrinsics")
    builtin = _BUILTIN.search(bare)
    if builtin:
        raise KernelFault("source", f"uses {builtin.group(1)}, which no kernel needs")
    for attribute in _attributes(bare):
        if attribute not in _ATTRIBUTES:
            raise KernelFault("source", f"uses the attribute {attribute} once its macros are expanded")


_FEATURE = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(?:_\w+_SOURCE|NDEBUG|__STDC_\w+|_USE_MATH_DEFINES)\b[^\r\n]*", re.MULTILINE
)


def headers_alone(source: bytes, expanded: str, name: str) -> bytes:
    """A file that includes what the kernel's file includes, and has none of its macros."""
    current, lines = name, [b"\n".join(_FEATURE.findall(source))]
    for marker in filter(None, map(_MARKER.match, expanded.splitlines())):
        if current == name and "1" in marker["flags"].split() and not marker["file"].startswith("<"):
            lines.append(f"#include <{marker['file'].rpartition('/')[2]}>".encode())
        current = marker["file"]
    return b"\n".join([*lines, b""])


def check_headers(expanded: str, name: str, alone: str) -> None:
    """Compare the headers' text with what it is without the kernel's macros. Raises KernelFault("source", ...)."""
    for mine, plain in itertools.zip_longest(_system_text(expanded, name), _system_text(alone, name)):
        if mine != plain:
            text = f"a macro of the file changes a system header: {(mine or plain or '').strip()[:80]}"
            raise KernelFault("source", f"{text}; include first, then define")


def _system_text(expanded: str, name: str) -> Iterator[str]:
    current = name
    for line in expanded.splitlines():
        marker = _MARKER.match(line)
        if marker:
            current = marker["file"]
        elif current != name and line.strip():
            yield line


def _own_text(expanded: str, name: str) -> str:
    """The lines that came from the kernel's own file. Raises KernelFault for a file that it may not include."""
    own: list[str] = []
    current = name
    for line in expanded.splitlines():
        marker = _MARKER.match(line)
        if marker is None:
            if current == name:
                own.append(line)
            continue
        entered = marker["file"]
        flags = marker["flags"].split()
        if current == name and "1" in flags and not entered.startswith("<"):
            header = entered.rpartition("/")[2].removesuffix(".h")
            if "3" not in flags or (
                header not in _HEADERS and not header.endswith("intrin") and header != "stdc-predef"
            ):
                raise KernelFault(
                    "source", f"includes {entered}; only standard and intrinsics headers are allowed"
                )
        current = entered
    return "\n".join(own)


def _attributes(text: str) -> Iterator[str]:
    """Names of every attribute, in every spelling, without their underscores and their arguments."""
    for found in re.finditer(r"__attribute(?:__)?\s*\(\s*\(|__declspec\s*\(|\[\s*\[", text):
        depth, names = 1, ""
        for character in text[found.end() :]:
            depth += (character in "([") - (character in ")]")
            if depth == 0:
                break
            names += character if depth == 1 else " "
        for name in _NAME.findall(names):
            yield name.rpartition(":")[2].strip().strip("_")


def check_object(run: Run, flags: tuple[str, ...]) -> None:
    """Judge a linked kernel, ``kernel.so`` where ``run`` runs. Raises KernelFault("symbols" or "instructions", ...)."""
    _check_symbols(run(["nm", "-D", "kernel.so"]), any(flag.startswith("-fopenmp") for flag in flags))
    _check_loading(run(["readelf", "-dSlW", "kernel.so"]))
    _check_instructions(run(["objdump", "-d", "--no-show-raw-insn", "kernel.so"]))


def _check_symbols(listing: str, openmp: bool) -> None:
    for line in listing.splitlines():
        kind, full = line.split()[-2:]
        name = full.split("@")[0]
        if kind == "i":
            raise KernelFault("symbols", f"{name} is chosen at load time (ifunc), which a kernel may not")
        if kind in "Uwv" and not _callable(name, openmp):
            raise KernelFault("symbols", f"uses {name}() of a library, which a kernel may not", symbol=name)


def _callable(name: str, openmp: bool) -> bool:
    if name in _PLAIN or _MATH.fullmatch(name):
        return True
    return openmp and bool(_OPENMP.fullmatch(name) or _VECTOR_MATH.fullmatch(name))


def _check_loading(listing: str) -> None:
    for section in (".init_array", ".fini_array", ".ctors", ".dtors", ".preinit_array", ".init", ".fini"):
        if re.search(rf"\] {re.escape(section)} ", listing):
            raise KernelFault("symbols", f"has a {section} section: code that runs when the file is loaded")
    for line in listing.splitlines():
        tag = re.search(r"0x[0-9a-f]+ \((\w+)\)", line)
        if tag and tag.group(1) in _LOADED_CODE:
            raise KernelFault("symbols", f"has {tag.group(1)}: code that runs when the file is loaded")
        needed = re.search(r"\(NEEDED\).*\[(.*)\]", line)
        if needed and not _LIBRARY.fullmatch(needed.group(1)):
            raise KernelFault("symbols", f"needs the library {needed.group(1)}, which a kernel may not")
        if re.search(r"^\s*(LOAD|GNU_STACK)\b.*\bRWE\b", line):
            raise KernelFault(
                "symbols", "has memory that can be written and executed; nested functions need that"
            )


def _check_instructions(listing: str) -> None:
    for line in listing.splitlines():
        if "\t" not in line:
            continue
        words = line.split("\t", 1)[1].split()
        if not words:
            continue
        for what, instructions in _INSTRUCTIONS.items():
            if words[0] in instructions:
                raise KernelFault("instructions", f"{what} ({' '.join(words[:2])}), which a kernel may not")
        if words[0] in ("mrs", "msr") and _REGISTERS.search(line):
            raise KernelFault(
                "instructions", f"uses a system register ({' '.join(words[:3])}), which a kernel may not"
            )
