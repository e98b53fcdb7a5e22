"""Private ad measurement that runs every day: user-level differential privacy for campaigns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adsbpc.campaign import Campaign as Campaign
    from adsbpc.client import Client as Client

__version__ = "0.1.0"
__all__ = ["Campaign", "Client", "__version__"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """`adsbpc.Campaign` and `adsbpc.Client`, imported when they are asked for: the package itself
    loads at once."""
    if name == "Campaign":
        from adsbpc.campaign import Campaign

        return Campaign
    if name == "Client":
        from adsbpc.client import Client

        return Client
    raise AttributeError(f"module 'adsbpc' has no attribute {name!r}")
