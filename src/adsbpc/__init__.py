"""Private ad measurement that runs every day: user-level differential privacy for campaigns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adsbpc.campaign import Campaign as Campaign

__version__ = "0.1.0"
__all__ = ["Campaign", "__version__"]


def __getattr__(name: str) -> Any:
    """`adsbpc.Campaign`, imported when it is asked for: the package itself loads at once."""
    if name == "Campaign":
        from adsbpc.campaign import Campaign

        return Campaign
    raise AttributeError(f"module 'adsbpc' has no attribute {name!r}")
