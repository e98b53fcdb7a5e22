"""An independent check of what a campaign promised, from its ledger, its files and its books."""

from adsbpc.audit.audit import Subject, audit
from adsbpc.audit.claims import Claim, Findings

__all__ = ["Claim", "Findings", "Subject", "audit"]
