"""Errors of compiling, of the artifact cache and of the command."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class NoCompilerError(PtoError):
    code = "C101"
    cause = "No C compiler was found."
    example = "CC=/nonexistent python model.py"
    fix = "Install gcc or clang, or set CC; target='interp' needs none."


class CompilerFailedError(PtoError):
    code = "C102"
    cause = "The C compiler refused the generated code, did not end, or left no library that can be opened."
    example = "a compiler too old for the flags"
    fix = "The report shows the compiler's message; PTO_WSP_COMPILE_TIMEOUT is how many seconds it may take (300)."


class CacheCorruptError(PtoError):
    code = "C103"
    cause = "An entry of the artifact cache does not match its manifest."
    example = "a file in the cache was edited"
    fix = "Remove the folder that the report names; it is built again."


class CompileOptionError(PtoError):
    code = "C104"
    cause = "compile() was given an unknown keyword, or a value that it does not take."
    example = ".compile(thread=2)"
    fix = "The error names the nearest keyword."


class AbiMismatchError(PtoError):
    code = "C105"
    cause = "A library was built against another version of the interface."
    example = "an artifact of an older version"
    fix = "Remove it from the cache; it is built again."


class ArtifactFolderError(PtoError):
    code = "C107"
    cause = "An artifact was to be saved where that cannot be done."
    example = "program.save('/folder/with/files')"
    fix = "Name a folder that is new or empty."


class CommandError(PtoError):
    code = "C108"
    cause = "A command was given a file, a folder or a name that it can do nothing with."
    example = "pto-wsp compile model.py --workload attentoin"
    fix = "The error says what the file or folder has."


class MissingDataError(PtoError):
    code = "C109"
    cause = "A package needs the elements, or the sizes, of a tensor that has no data."
    example = "lens = Tensor.empty((4,), DType.I64), read as the length of a ragged axis"
    fix = "Give lengths, offsets and indices as Tensor(array), and extents as numbers: the largest, with a slice X[:n] where it is used."


class CacheFolderError(PtoError):
    code = "C106"
    cause = "The folder of the artifact cache cannot be used: it cannot be written, or others than the user could have written there."
    example = "PTO_WSP_CACHE_DIR=/read-only python model.py"
    fix = "Set PTO_WSP_CACHE_DIR to a folder of your own that nobody else can write, or make room there; target='interp' needs none."


class ArchError(PtoError):
    code = "C110"
    cause = "A model of a machine says what no machine can be, or less than is asked of it."
    example = "Arch(name='mine', cores=Cores(cube=-1))"
    fix = "The error names the field; with_unit, with_memory, with_cores and with_aicpu give a model other numbers."


class LoadError(PtoError):
    code = "C111"
    cause = "A folder was to be loaded that holds no saved program, one that was changed, or one that does not run in this process."
    example = "pto_wsp.load('package_for_a_device')"
    fix = "Name a folder that program.save(folder) of target cpu_sim has written, and leave its files as they are."


class CompilerFlagError(PtoError):
    code = "C112"
    cause = "CC has a flag that changes what programs compute."
    example = "CC='gcc -ffast-math' python model.py"
    fix = "Take the flag out of CC: a program computes the same numbers on every target and machine."


class PassError(PtoError):
    code = "C113"
    cause = "A function that stands for a pass breaks what holds after that pass, changes what a kernel computes, or raises."
    example = ".compile(passes={'simplify': lambda kernel, context: None})"
    fix = "The error names the rule and what broke it; lower(until=NAME) shows what the package's own pass gives."


class PassStrategyError(PtoError):
    code = "C117"
    cause = ("A list of passes leaves out one that the target needs, or has passes in another order; or a pass was asked for that "
             "is left out.")
    example = ".compile(passes=['simplify'])"
    fix = "The error names the pass and why the target needs it; passes='none' is the shortest list, `pto-wsp passes` shows the order."


class UnknownPassError(PtoError):
    code = "C114"
    cause = "A pass was named that the target does not have."
    example = ".lower(until='simplfy')"
    fix = "The error names the passes in order and the nearest; `pto-wsp passes` says what each does."


class PackageNameError(PtoError, KeyError):
    code = "C116"
    cause = "A package was asked for a file or a kernel that it does not have."
    example = "program.package.files['kernels/aiv/rmsnrom.cpp']"
    fix = "The error names the nearest; iterating over `files` or `kernels` gives every name."


class ArchOptionError(CompileOptionError):
    code = "C115"
    cause = "No arch has that name, or it is no machine of the target, or does not say what is asked of it: a memory, a unit, a speed."
    example = ".compile(arch=\"ascend_911\")"
    fix = "Use an arch that the error names, or an Arch of your own that gives the numbers."


class MissingLibraryError(PtoError):
    code = "C120"
    cause = "A call needs a library that this package uses where it is there, and it is not installed."
    example = "program.graph.to_networkx()  # without networkx"
    fix = "Install it; the error says how."


class CompileForbiddenError(PtoError):
    code = "C118"
    cause = "A call would have had to compile, in a block that forbids it."
    example = "with tt.no_compile(): f(x)  # the first call with such an x"
    fix = "Call the function once with arguments of these types before the block; f.compiled lists what is there."
