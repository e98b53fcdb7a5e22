"""Makes small stores as the version at hand leaves them, for every later one to read and continue.

    python -m tests.compatibility.making tests/compatibility/stores/2026-11-18

Run once for a version that people may have run, and kept as it is from then on. `next.json` is what
that version released as the third slot, with noise from a seed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from adsbpc.campaign import Campaign
from adsbpc.privacy import SecureRandomness, SeededRandomness
from adsbpc.storage import RemotePath

_FIT = ("[privacy]", "[attribution.fit]\nrho = 0.05\nslots = 2\n\n[privacy]")
_PERSONAL = 'mechanism = "personal-budget"'
_MEASURES = """
[[measure]]
name = "conversions"
metric = "conversions"
weights = [1, 8]
share = 0.6

[[measure]]
name = "reach"
metric = "reach"
share = 0.4
"""
_STORES: dict[str, dict[str, Any]] = {
    "histogram": {},
    "svt": {"privacy": '[privacy.adsbpc]\nbounds = "svt"'},
    "personal-budget": {"privacy": _PERSONAL},
    "fitted": {"privacy": _PERSONAL, "model": "shapley"},
    "measures": {"privacy": f"{_PERSONAL}\n{_MEASURES}"},
    # Books as a cluster writes them to a store, copied to a disk.
    "folders": {"privacy": _PERSONAL},
    # Quick to plan; the default searches for a better strategy.
    "long": {
        "privacy": f'{_PERSONAL}\n[privacy.personal_budget]\nstrategy = "toeplitz"\nbeta = 0.4',
        "slots": 1_100,
        "slot": "1h",
        "conversions_per_slot": 2,
    },
}
RELEASED_SLOTS = 2


@contextmanager
def seeded_noise(seed: int = 7) -> Iterator[None]:
    """The samplers of `SecureRandomness` draw from a seed, and nobody can tell."""
    seeded = SeededRandomness(seed)
    with (
        patch.object(SecureRandomness, "gaussian", lambda _, *given: seeded.gaussian(*given)),
        patch.object(SecureRandomness, "laplace", lambda _, *given: seeded.laplace(*given)),
        patch.object(SecureRandomness, "choose", lambda _, *given: seeded.choose(*given)),
    ):
        yield


def _make(folder: Path, name: str, options: dict[str, Any]) -> None:
    from tests.campaign.files import write_campaign
    from tests.storage.campaigns import copied_to_a_disk, written_in_parts

    file = write_campaign(folder, **options)
    if name == "fitted":
        file.write_text(file.read_text().replace(*_FIT))
    store = RemotePath("memory://stores/folders")
    if name == "folders":
        file.write_text(f'{file.read_text()}\n[storage]\nlocation = "{store}"\n')
    with written_in_parts():
        for slot in range(1, RELEASED_SLOTS + 1):
            Campaign.load(file).release(slot)
    if name == "folders":
        copied_to_a_disk(file, store)
    with TemporaryDirectory() as elsewhere, seeded_noise():
        copy = shutil.copytree(folder, Path(elsewhere) / "copy")
        text = Campaign.load(copy / file.name).release(RELEASED_SLOTS + 1)[0].text
    (folder / "next.json").write_text(text)


if __name__ == "__main__":
    for name, options in _STORES.items():
        _make(Path(sys.argv[1]) / name, name, options)
