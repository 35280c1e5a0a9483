"""The error tree: one class an error, each with its code, its cause, an example that fails and the fix.

`str(error)` is the whole report that a user sees; `code`, `span` and `notes` are there for programs. An error that is ours, not
the user's, is an `InternalError`.
"""

from __future__ import annotations

from pto_wsp.errors.build import AbiMismatchError as AbiMismatchError
from pto_wsp.errors.build import ArchError as ArchError
from pto_wsp.errors.build import ArchOptionError as ArchOptionError
from pto_wsp.errors.build import ArtifactFolderError as ArtifactFolderError
from pto_wsp.errors.build import CacheCorruptError as CacheCorruptError
from pto_wsp.errors.build import CacheFolderError as CacheFolderError
from pto_wsp.errors.build import CommandError as CommandError
from pto_wsp.errors.build import CompileOptionError as CompileOptionError
from pto_wsp.errors.build import CompilerFailedError as CompilerFailedError
from pto_wsp.errors.build import CompilerFlagError as CompilerFlagError
from pto_wsp.errors.build import LoadError as LoadError
from pto_wsp.errors.build import MissingDataError as MissingDataError
from pto_wsp.errors.build import NoCompilerError as NoCompilerError
from pto_wsp.errors.build import PassError as PassError
from pto_wsp.errors.build import UnknownPassError as UnknownPassError
from pto_wsp.errors.device import CubeError as CubeError
from pto_wsp.errors.device import DeviceLimitError as DeviceLimitError
from pto_wsp.errors.device import DialectError as DialectError
from pto_wsp.errors.device import FlagError as FlagError
from pto_wsp.errors.device import FormError as FormError
from pto_wsp.errors.device import MixedKernelError as MixedKernelError
from pto_wsp.errors.device import NpuOpError as NpuOpError
from pto_wsp.errors.device import PipeHazardError as PipeHazardError
from pto_wsp.errors.device import TileFormError as TileFormError
from pto_wsp.errors.device import TilePlaceError as TilePlaceError
from pto_wsp.errors.kernel import ArgumentDTypeError as ArgumentDTypeError
from pto_wsp.errors.kernel import ArgumentKindError as ArgumentKindError
from pto_wsp.errors.kernel import ArgumentRankError as ArgumentRankError
from pto_wsp.errors.kernel import ArgumentShapeError as ArgumentShapeError
from pto_wsp.errors.kernel import ArityError as ArityError
from pto_wsp.errors.kernel import BufferMisuseError as BufferMisuseError
from pto_wsp.errors.kernel import CapacityError as CapacityError
from pto_wsp.errors.kernel import CarriedValueError as CarriedValueError
from pto_wsp.errors.kernel import ConditionError as ConditionError
from pto_wsp.errors.kernel import DepthError as DepthError
from pto_wsp.errors.kernel import EscapedValueError as EscapedValueError
from pto_wsp.errors.kernel import ExpressionSizeError as ExpressionSizeError
from pto_wsp.errors.kernel import InstructionError as InstructionError
from pto_wsp.errors.kernel import InstructionOperandError as InstructionOperandError
from pto_wsp.errors.kernel import KernelSignatureError as KernelSignatureError
from pto_wsp.errors.kernel import MissingBodyError as MissingBodyError
from pto_wsp.errors.kernel import MixedDTypeError as MixedDTypeError
from pto_wsp.errors.kernel import NumberError as NumberError
from pto_wsp.errors.kernel import OperandKindError as OperandKindError
from pto_wsp.errors.kernel import OperandShapeError as OperandShapeError
from pto_wsp.errors.kernel import OptionValueError as OptionValueError
from pto_wsp.errors.kernel import OutNeverStoredError as OutNeverStoredError
from pto_wsp.errors.kernel import OutsideTraceError as OutsideTraceError
from pto_wsp.errors.kernel import OwnBodyError as OwnBodyError
from pto_wsp.errors.kernel import SymbolicControlError as SymbolicControlError
from pto_wsp.errors.kernel import UnknownNameError as UnknownNameError
from pto_wsp.errors.kernel import UnsupportedDTypeError as UnsupportedDTypeError
from pto_wsp.errors.kernel import ValueUseError as ValueUseError
from pto_wsp.errors.kernel import ViewBoundsError as ViewBoundsError
from pto_wsp.errors.kernel import ViewIndexError as ViewIndexError
from pto_wsp.errors.order import IntermediatesError as IntermediatesError
from pto_wsp.errors.order import OverlappingOutputsError as OverlappingOutputsError
from pto_wsp.errors.order import RaceError as RaceError
from pto_wsp.errors.order import UnprovedOrderError as UnprovedOrderError
from pto_wsp.errors.order import WrittenContractError as WrittenContractError
from pto_wsp.errors.pto_error import InternalError as InternalError
from pto_wsp.errors.pto_error import Place as Place
from pto_wsp.errors.pto_error import PtoError as PtoError
from pto_wsp.errors.pto_error import raise_all as raise_all
from pto_wsp.errors.pto_error import unreachable as unreachable
from pto_wsp.errors.run import ArrayBindingError as ArrayBindingError
from pto_wsp.errors.run import AxisDataError as AxisDataError
from pto_wsp.errors.run import BindingError as BindingError
from pto_wsp.errors.run import ContractError as ContractError
from pto_wsp.errors.run import CyclesError as CyclesError
from pto_wsp.errors.run import DisagreementError as DisagreementError
from pto_wsp.errors.run import NotFiniteError as NotFiniteError
from pto_wsp.errors.run import ProgramStateError as ProgramStateError
from pto_wsp.errors.run import RecordLimitError as RecordLimitError
from pto_wsp.errors.run import RunBoundsError as RunBoundsError
from pto_wsp.errors.run import TaskFailedError as TaskFailedError
from pto_wsp.errors.run import TaskNameError as TaskNameError
from pto_wsp.errors.run import ThreadStartError as ThreadStartError
from pto_wsp.errors.run import WindowError as WindowError
from pto_wsp.errors.sanitize import RunRaceError as RunRaceError
from pto_wsp.errors.sanitize import StrayAccessError as StrayAccessError
from pto_wsp.errors.sanitize import UnwrittenError as UnwrittenError
from pto_wsp.errors.tuning import AutoScheduleError as AutoScheduleError
from pto_wsp.errors.tuning import TunableError as TunableError
from pto_wsp.errors.workload import AxisError as AxisError
from pto_wsp.errors.workload import CalendarError as CalendarError
from pto_wsp.errors.workload import ChannelError as ChannelError
from pto_wsp.errors.workload import DataDependentError as DataDependentError
from pto_wsp.errors.workload import DataFormatError as DataFormatError
from pto_wsp.errors.workload import DeadlockError as DeadlockError
from pto_wsp.errors.workload import DirectiveError as DirectiveError
from pto_wsp.errors.workload import DTypeNameError as DTypeNameError
from pto_wsp.errors.workload import KeyRangeError as KeyRangeError
from pto_wsp.errors.workload import KeyTraceError as KeyTraceError
from pto_wsp.errors.workload import LoopVariableError as LoopVariableError
from pto_wsp.errors.workload import PipelineError as PipelineError
from pto_wsp.errors.workload import PolicyValueError as PolicyValueError
from pto_wsp.errors.workload import ProcessError as ProcessError
from pto_wsp.errors.workload import ScheduleConflictError as ScheduleConflictError
from pto_wsp.errors.workload import SlotOrderError as SlotOrderError
from pto_wsp.errors.workload import TensorDataError as TensorDataError
from pto_wsp.errors.workload import TokenError as TokenError
from pto_wsp.errors.workload import UnboundSymbolError as UnboundSymbolError
from pto_wsp.errors.workload import ValueScopeError as ValueScopeError
from pto_wsp.errors.workload import WorkloadDepthError as WorkloadDepthError
from pto_wsp.errors.workload import WorkloadStructureError as WorkloadStructureError


def catalog() -> tuple[type[PtoError], ...]:
    """Return every error class that a user can meet, by code; some are subclasses of others."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, PtoError) and kind is not PtoError]
    return tuple(sorted(kinds, key=lambda kind: kind.code))
