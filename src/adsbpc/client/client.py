"""`adsbpc.Client`: the service's API in Python.

client = Client("http://localhost:8080", key="adsbpc_...")
client.push_impressions([{"user_id": "u1", "advertiser_id": "Ad-1", "timestamp": now, ...}])
client.report(campaign_id)

Pushes carry a key of their own, so that sending one again, after a break or on purpose, counts it
once.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self
from uuid import uuid4

from adsbpc.client.rows import Rows, bodies_of, moment_text
from adsbpc.errors import AdsbpcError

try:
    import httpx
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "adsbpc.Client needs httpx, which is not installed. Install the extra: "
        "pip install 'adsbpc[service]'"
    ) from None

# Answers that mean "later": a push is then sent again, with the same key.
_LATER = (429, 502, 503, 504)


class ClientError(AdsbpcError):
    """The service refused. `status` is that of the answer, 0 if there was none. `batch` is the key
    of a push that failed: sent again with it, it counts once whatever became of it."""

    batch: str | None = None

    def __init__(self, status: int, title: str, detail: str, to_do: str) -> None:
        self.status, self.title, self.detail, self.to_do = status, title, detail, to_do
        super().__init__(f"{title}: {detail}. {to_do}")


class NothingAcceptedError(ClientError):
    """The service took the push, and set aside every row of it. `answer` is what it said."""

    def __init__(self, batch: str, answer: dict[str, Any]) -> None:
        self.batch, self.answer = batch, answer
        reasons = Counter(verdict["reason"] for verdict in answer["verdicts"])
        told = "; ".join(f"{reason} ({count:,} rows)" for reason, count in reasons.most_common(3))
        super().__init__(
            200,
            "Nothing accepted",
            f"all {answer['rows']:,} rows of batch {batch!r} are in quarantine: {told}",
            "Correct them, and send them under another key",
        )


class Client:
    """`attempts` is how often a push is sent before giving up. `max_rows` and `max_bytes` are those
    of one batch, as the server's [ingest] max_rows and max_body_bytes: whatever is larger is sent
    in several."""

    def __init__(
        self,
        url: str,
        key: str,
        attempts: int = 5,
        timeout_seconds: float = 60,
        pack: bool = False,
        max_rows: int = 10_000,
        max_bytes: int = 8 * 2**20,
    ) -> None:
        self._attempts, self._pack = attempts, pack
        self._most_rows, self._most_bytes = max_rows, max_bytes
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=timeout_seconds,
            # Sooner than a server hangs up on a connection that nobody uses, which is after 5 s.
            limits=httpx.Limits(keepalive_expiry=2),
            # Nothing but the server that was named.
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def push_impressions(self, rows: Rows, batch: str | None = None) -> dict[str, Any]:
        """Send rows, and tell what became of each; objects, or a table of pandas, polars or Arrow.
        `batch` is a key for them, a new one if left out: the same key counts once. Rows that are
        too many for one batch are sent in several, under keys of their own made of it."""
        return self._push("impressions", rows, batch)

    def push_conversions(self, rows: Rows, batch: str | None = None) -> dict[str, Any]:
        return self._push("conversions", rows, batch)

    def _push(self, source: str, rows: Rows, batch: str | None) -> dict[str, Any]:
        batch = batch or uuid4().hex
        try:
            answers = [
                self._push_part(source, body, batch if number == 1 else f"{batch}:{number}")
                for number, body in enumerate(bodies_of(rows, self._most_rows, self._most_bytes), 1)
            ]
        except ClientError as error:
            error.batch = batch
            raise
        answer = _together(answers)
        if answer["rows"] and answer["quarantined"] == answer["rows"]:
            raise NothingAcceptedError(batch, answer)
        return answer

    def _push_part(self, source: str, body: bytes, key: str) -> dict[str, Any]:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        if self._pack:
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        return dict(self._sent(f"/v1/{source}", body, headers).json())

    def _sent(self, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        for attempt in range(1, self._attempts + 1):
            try:
                answer = self._http.post(path, content=body, headers=headers)
            except httpx.TransportError as error:
                if attempt == self._attempts:
                    raise _unreachable(error) from error
                time.sleep(0.2 * 2**attempt)
                continue
            if answer.status_code not in _LATER or attempt == self._attempts:
                break
            time.sleep(_pause(answer))
        return _checked(answer)

    def plan(
        self,
        content: Mapping[str, Any],
        targets: Sequence[str] = (),
        lift: float | None = None,
        rate: float | None = None,
    ) -> dict[str, Any]:
        """What a campaign would promise, its errors to expect, and which budget would reach
        targets such as "conversions/publisher=10%". Of a trial, how likely it shows a `lift` over
        a control of which the part `rate` converts."""
        asked = {name: value for name, value in (("lift", lift), ("rate", rate)) if value}
        return self._post("/v1/plan", content, target=list(targets), **asked)

    def deliveries(self, hours: int = 48) -> dict[str, Any]:
        """What was sent with keys of this role and subject, and what became of it."""
        return self._get("/v1/deliveries", hours=hours)

    def create_campaign(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """From the keys of a campaign file, without [engine] and [ledger]."""
        return self._post("/v1/campaigns", content)

    def push_spend(self, campaign: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All that publishers were paid, in place of what was sent before: `publisher_id`, `day`
        and `amount` of each row, and if you like `dimensions`, values by their names."""
        plain = [{**row, "day": str(row["day"])} for row in rows]
        answer = self._send("PUT", f"/v1/campaigns/{campaign}/spend", json={"rows": plain})
        return dict(answer.json())

    def assignment(self, campaign: str) -> dict[str, Any]:
        """Who is in which arm of a trial: its secret `key`, and the `limits` of the arms."""
        return self._get(f"/v1/campaigns/{campaign}/assignment")

    def assignment_function(
        self, campaign: str, language: Literal["javascript", "duckdb", "spark"]
    ) -> str:
        """The same as a JavaScript module, or an expression in SQL, of the user id and the key."""
        query = {"format": language}
        return self._send("GET", f"/v1/campaigns/{campaign}/assignment", params=query).text

    def campaigns(self) -> list[dict[str, Any]]:
        return list(self._get("/v1/campaigns")["campaigns"])

    def spending(self) -> dict[str, float]:
        """Budgets of all scopes that this key may read, together: `limit`, `spent`, `left`."""
        return dict(self._get("/v1/campaigns")["spending"])

    def campaign(self, campaign: str) -> dict[str, Any]:
        return self._get(f"/v1/campaigns/{campaign}")

    def verification(self, campaign: str) -> dict[str, Any]:
        return self._get(f"/v1/campaigns/{campaign}/verification")

    def release(self, campaign: str, through: int | None = None) -> list[dict[str, Any]]:
        """By hand what is due, up to a slot."""
        body = {} if through is None else {"through": through}
        return list(self._post(f"/v1/campaigns/{campaign}/releases", body)["released"])

    def withdraw(self, campaign: str) -> None:
        """Take back a campaign that has not started."""
        self._send("DELETE", f"/v1/campaigns/{campaign}")

    def pause(self, campaign: str) -> dict[str, Any]:
        return self._post(f"/v1/campaigns/{campaign}/pause", {})

    def resume(self, campaign: str) -> dict[str, Any]:
        return self._post(f"/v1/campaigns/{campaign}/resumption", {})

    def close_campaign(self, campaign: str) -> dict[str, Any]:
        """End a campaign for good; `returned` is the rho that went back to its scope."""
        return self._post(f"/v1/campaigns/{campaign}/closing", {})

    def releases(self, campaign: str, after: int = 0) -> list[dict[str, Any]]:
        return list(self._get(f"/v1/campaigns/{campaign}/releases", after=after)["releases"])

    def report(
        self,
        campaign: str,
        format: Literal["json", "csv", "parquet", "html", "mmm"] = "json",
        level: float = 0.95,
        adjusted: bool = False,
        band: bool = False,
        measure: str | None = None,
    ) -> bytes:
        """The report as a file of that format; a page is about one `measure`."""
        query: dict[str, Any] = {
            "format": format, "level": level, "adjusted": adjusted, "band": band,
        }  # fmt: skip
        if measure is not None:
            query["measure"] = measure
        return self._send("GET", f"/v1/campaigns/{campaign}/report", params=query).content

    def statement(
        self,
        campaign: str,
        format: str = "json",
        of: str = "campaign",
        audit: bool = False,
        signed: bool = False,
    ) -> bytes:
        """The statement for auditors as a file of that format: json, html or md. If `signed`, a ZIP
        with its signature beside it, for `adsbpc verify` with the `signing_key`."""
        query = {"format": format, "of": of, "audit": audit, "signed": signed}
        return self._send("GET", f"/v1/campaigns/{campaign}/statement", params=query).content

    def signing_key(self) -> bytes:
        """The public key of statements, in PEM."""
        return self._send("GET", "/signing-key").content

    def listen(self, campaign: str, after: int | None = None) -> Iterator[int]:
        """Each slot as it is released; ends after the last one, or when the server stops."""
        query = {} if after is None else {"after": after}
        path = f"/v1/campaigns/{campaign}/stream"
        try:
            with self._http.stream("GET", path, params=query, timeout=None) as answer:
                if not answer.is_success:
                    answer.read()
                for line in _checked(answer).iter_lines():
                    if line.startswith("data:"):
                        yield int(json.loads(line.removeprefix("data:"))["slot"])
        except httpx.TransportError as error:
            raise _unreachable(error) from error

    def whoami(self) -> dict[str, Any]:
        return self._get("/v1/whoami")

    def create_key(
        self, role: str, subject: str = "", label: str = "", expires_at: datetime | None = None
    ) -> dict[str, Any]:
        """The answer holds the key, only this once."""
        wanted = {
            "role": role,
            "subject": subject,
            "label": label or f"{role} {subject}".strip(),
            "expires_at": None if expires_at is None else expires_at.isoformat(),
        }
        return self._post("/v1/keys", wanted)

    def keys(self) -> list[dict[str, Any]]:
        return list(self._get("/v1/keys")["keys"])

    def revoke_key(self, key_id: str) -> None:
        self._send("DELETE", f"/v1/keys/{key_id}")

    def operations(self, hours: int = 24) -> dict[str, Any]:
        return self._get("/v1/operations", hours=hours)

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return dict(self._send("GET", path, params=query).json())

    def _post(self, path: str, content: Mapping[str, Any], **query: Any) -> dict[str, Any]:
        body = json.dumps(content, default=moment_text)
        headers = {"Content-Type": "application/json"}
        return dict(
            self._send("POST", path, content=body, headers=headers, params=query or None).json()
        )

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return _checked(self._http.request(method, path, **more))
        except httpx.TransportError as error:
            raise _unreachable(error) from error


def _pause(answer: httpx.Response) -> float:
    """Seconds; a proxy in between may say a date instead, which is no matter of seconds."""
    said = answer.headers.get("Retry-After", "1")
    return min(float(said), 30) if said.isdecimal() else 30


def _together(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """One answer for parts of a push, with rows numbered through; `repeated` if all of them were
    stored before."""
    if len(answers) == 1:
        return answers[0]
    verdicts, before = [], 0
    for answer in answers:
        verdicts += [{**each, "row": each["row"] + before} for each in answer["verdicts"]]
        before += answer["rows"]
    counts = {
        name: sum(answer[name] for answer in answers)
        for name in ("rows", "accepted", "duplicates", "quarantined")
    }
    repeated = all(answer["repeated"] for answer in answers)
    return {**answers[0], **counts, "verdicts": verdicts, "repeated": repeated}


def _checked(answer: httpx.Response) -> httpx.Response:
    # A redirect is none of the service's: the key would go who knows where.
    if answer.is_success:
        return answer
    try:
        body = answer.json()
        told = (str(body["title"]), str(body["detail"]), str(body["to_do"]))
    except (ValueError, KeyError, TypeError):
        # A proxy in between has its own words.
        told = (f"HTTP {answer.status_code}", answer.reason_phrase, "Look at what is in between")
    raise ClientError(answer.status_code, *told)


def _unreachable(error: httpx.TransportError) -> ClientError:
    return ClientError(
        0, "No answer", f"the server cannot be reached ({error})", "Check its address"
    )
