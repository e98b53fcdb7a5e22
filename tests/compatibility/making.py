"""Makes small stores as the version at hand leaves them, for every later one to read and continue.

    python -m tests.compatibility.making tests/compatibility/stores/2026-11-16

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
from unittest.mock import patch

from adsbpc.campaign import Campaign
from adsbpc.privacy import SecureRandomness, SeededRandomness

_FIT = ("[privacy]", "[attribution.fit]\nrho = 0.05\nslots = 2\n\n[privacy]")
_STORES = {
    "histogram": {},
    "svt": {"privacy": '[privacy.adsbpc]\nbounds = "svt"'},
    "personal-budget": {"privacy": 'mechanism = "personal-budget"'},
    "fitted": {"privacy": 'mechanism = "personal-budget"', "model": "shapley"},
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


def _make(folder: Path, name: str, options: dict[str, str]) -> None:
    from tests.campaign.files import write_campaign

    file = write_campaign(folder, **options)  # type: ignore[arg-type]
    if name == "fitted":
        file.write_text(file.read_text().replace(*_FIT))
    for slot in range(1, RELEASED_SLOTS + 1):
        Campaign.load(file).release(slot)
    with TemporaryDirectory() as elsewhere, seeded_noise():
        copy = shutil.copytree(folder, Path(elsewhere) / "copy")
        text = Campaign.load(copy / file.name).release(RELEASED_SLOTS + 1)[0].text
    (folder / "next.json").write_text(text)


if __name__ == "__main__":
    for name, options in _STORES.items():
        _make(Path(sys.argv[1]) / name, name, options)
