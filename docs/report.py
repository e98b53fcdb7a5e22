"""Writes docs/report.schema.json: python docs/report.py"""

from __future__ import annotations

import json
from pathlib import Path

from adsbpc.report.schema import schema

TARGET = Path(__file__).with_name("report.schema.json")

if __name__ == "__main__":
    TARGET.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
