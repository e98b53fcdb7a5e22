"""A client of the service: pushes events, creates campaigns, reads what was released."""

from adsbpc.client.client import Client, ClientError, NothingAcceptedError

__all__ = ["Client", "ClientError", "NothingAcceptedError"]
