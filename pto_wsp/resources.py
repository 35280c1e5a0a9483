"""Where the C library and the templates are: inside the package in a wheel, beside it in a checkout.

>>> (csrc_dir() / "include" / "pto_abi.h").is_file()
True
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE_DIR = Path(__file__).resolve().parent


def csrc_dir() -> Path:
    """Return the folder of the C library.

    Raises: FileNotFoundError if the installation has none.
    """
    return _find("csrc", _PACKAGE_DIR)


def templates_dir() -> Path:
    """Return the folder of the Jinja templates.

    Raises: FileNotFoundError if the installation has none.
    """
    return _find("templates", _PACKAGE_DIR)


def _find(name: str, package_dir: Path) -> Path:
    # The wheel's home comes first: beside an installed package stand the folders of other projects.
    homes = (package_dir / "_data" / name, package_dir.parent / name)
    for home in homes:
        if home.is_dir():
            return home
    looked = " nor ".join(str(home) for home in homes)
    raise FileNotFoundError(f"this installation of pto_wsp is incomplete: found neither {looked}; install it again")
