// Which arm of a trial somebody is in: the same as everywhere else (docs/lift.md).
//
// The place of a person is the first 13 hexadecimal digits of SHA-256 of `key:userId` in UTF-8. Arms
// are ranges of places: [["treatment", "e666666666666"], ["control", "g"]] are nine tenths and the
// rest, as `adsbpc lift assign FILE --javascript` prints them. Works in browsers and in node.
// The key is a secret: keep it on servers that choose ads, and out of pages.

const DIGITS = 13;

export async function placeOf(key, userId) {
  if (!/^[0-9a-f]{64}$/.test(key)) {
    throw new Error("expected a key of 64 hexadecimal digits in lower case");
  }
  const id = String(userId);
  if (id === "" || !id.isWellFormed()) {
    throw new Error("expected a user id that is a text in Unicode, and not empty");
  }
  const text = new TextEncoder().encode(`${key}:${id}`);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  const digits = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.slice(0, DIGITS);
}

// The name of the arm, or "other" for whoever is in none.
export async function armOf(key, userId, limits) {
  const place = await placeOf(key, userId);
  // Digits are ASCII and of one length: texts compare as numbers do.
  const found = limits.find(([, end]) => place < end);
  return found === undefined ? "other" : found[0];
}
