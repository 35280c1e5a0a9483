"""The error tree: one class an error, each with its code, its cause, an example that fails and the fix.

`str(error)` is the whole report that a user sees; `code`, `span` and `notes` are there for programs. An error that is ours, not
the user's, is an `InternalError`.
"""

from __future__ import annotations

from pto_wsp.errors.build import *
from pto_wsp.errors.device import *
from pto_wsp.errors.kernel import *
from pto_wsp.errors.mesh import *
from pto_wsp.errors.order import *
from pto_wsp.errors.pto_error import InternalError as InternalError
from pto_wsp.errors.pto_error import PtoError as PtoError
from pto_wsp.errors.pto_error import SourcePosition as SourcePosition
from pto_wsp.errors.pto_error import no_error_lost as no_error_lost
from pto_wsp.errors.pto_error import raise_all as raise_all
from pto_wsp.errors.pto_error import unreachable as unreachable
from pto_wsp.errors.run import *
from pto_wsp.errors.tensor import *
from pto_wsp.errors.tensor_plan import *
from pto_wsp.errors.tuning import *
from pto_wsp.errors.workload import *

# Names of PTO-WSP v9 for any error of a user.
TypeCheckError = PtoError
LayoutIncompatibleError = PtoError


def catalog() -> tuple[type[PtoError], ...]:
    """Return every error class that a user can meet, by code; some are subclasses of others."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, PtoError) and kind is not PtoError]
    return tuple(sorted(kinds, key=lambda kind: kind.code))
