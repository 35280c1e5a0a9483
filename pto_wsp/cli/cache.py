"""The cards of `pto-wsp cache`: what is in the artifact store, whether it is whole, and what was removed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pto_wsp.artifact.inventory import UNFINISHED, StoredArtifact, faults, remove, stored
from pto_wsp.artifact.store import cache_root
from pto_wsp.view.card import Card, TablePart
from pto_wsp.wording import counted

_ROWS = 40
_DAY_S = 86400.0


def size_text(n_bytes: int) -> str:
    """Return a size for people.

    >>> size_text(1536), size_text(12)
    ('1.5 KiB', '12 B')
    """
    size, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _age(built_at: float) -> str:
    days = max(0.0, time.time() - built_at) / _DAY_S
    return f"{days:.0f} d" if days >= 2 else f"{days * 24:.0f} h" if days >= 1 / 12 else f"{days * 1440:.0f} min"


def _total(found: Sequence[StoredArtifact]) -> str:
    return f"{counted(len(found), 'artifact')}, {size_text(sum(one.size_bytes for one in found))}"


def _table(found: Sequence[StoredArtifact], title: str = "") -> tuple[TablePart, ...]:
    rows = tuple((one.name, one.kind, size_text(one.size_bytes), _age(one.built_at)) for one in found[:_ROWS])
    return (TablePart(title=title, head=("artifact", "kind", "size", "age"), rows=rows, right=(2, 3),
                      more=max(0, len(found) - _ROWS)),) if found else ()


def listing() -> Card:
    """Return the card of the artifacts, largest first. Raises: C106 for a store that cannot be used."""
    found = stored()
    return Card(title="Cache", subtitle=str(cache_root()), sentence=f"{_total(found)}.", parts=_table(found),
                foot="pto-wsp cache verify holds the files against their checksums, pto-wsp cache prune removes")


def sizes() -> Card:
    """Return the card of the store's size by kind. Raises: C106 for a store that cannot be used."""
    found = stored()
    by_kind = {one.kind: [other for other in found if other.kind == one.kind] for one in found}
    rows = tuple((kind, f"{len(ones):,}", size_text(sum(one.size_bytes for one in ones))) for kind, ones in by_kind.items())
    return Card(title="Cache", subtitle=str(cache_root()), sentence=f"{_total(found)}.",
                parts=(TablePart(head=("kind", "artifacts", "size"), rows=rows, right=(1, 2)),) if rows else ())


def verified() -> tuple[Card, bool]:
    """Return the card of what is damaged, and whether anything is. Raises: C106 for a store that cannot be used."""
    found = stored()
    bad = tuple(faults(found)) if found else ()
    rows = tuple((one.name, one.kind, reason) for one, reason in bad)
    sentence = f"{len(bad)} of {_total(found)} damaged." if bad else f"{_total(found)}: every file is as it was built."
    return Card(title="Cache", subtitle=str(cache_root()), sentence=sentence, foot="pto-wsp cache prune removes them" if bad else "",
                parts=(TablePart(head=("artifact", "kind", "what is wrong"), rows=rows),) if rows else ()), bool(bad)


def pruned(everything: bool, older_than_days: float | None, dry_run: bool) -> Card:
    """Remove artifacts and return the card of what went.

    Without options: what is damaged, and what unfinished builds left more than an hour ago. Raises: C106 for a store that cannot be used.
    """
    found = stored()
    bad = {one.name for one, _ in faults(found)} if found else set()
    now = time.time()

    def goes(one: StoredArtifact) -> bool:
        age_s = now - one.built_at
        return (everything or one.name in bad or (one.kind == UNFINISHED and age_s > 3600)
                or (older_than_days is not None and age_s > older_than_days * _DAY_S))

    gone = tuple(one for one in found if goes(one))
    if gone and not dry_run:
        remove(gone)
    left = tuple(one for one in found if one not in gone)
    return Card(title="Cache", subtitle=str(cache_root()), parts=_table(gone),
                sentence=f"{'Would remove' if dry_run else 'Removed'} {_total(gone)}; {_total(left)} left.")
