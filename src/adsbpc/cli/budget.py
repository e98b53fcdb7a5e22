"""`adsbpc budget`: between rho and (epsilon, delta)."""

from __future__ import annotations

import json

from adsbpc.errors import PrivacyError
from adsbpc.privacy import epsilon_of, epsilon_of_gaussian, exact_rho, rho_of
from adsbpc.report.numbers import rounded_down, rounded_up


def run(
    rho: float | None, epsilon: float | None, delta: float, gaussian: bool, as_json: bool
) -> None:
    if (rho is None) == (epsilon is None):
        raise PrivacyError("give --rho or --epsilon: the other one is computed")
    if epsilon is not None:
        if gaussian:
            raise PrivacyError("--gaussian goes with --rho: leave it out to convert an epsilon")
        exact = rho_of(epsilon, delta)
        result = epsilon
    else:
        assert rho is not None
        exact = exact_rho(rho)
        result = (epsilon_of_gaussian if gaussian else epsilon_of)(exact, delta)
    conversion = "gaussian" if gaussian else "zcdp"
    if as_json:
        found = {"rho": float(exact), "epsilon": result, "delta": delta, "conversion": conversion}
        print(json.dumps(found))
        return
    how = "continuous Gaussian noise" if gaussian else "any rho-zCDP mechanism"
    shown = rounded_down(float(exact))
    print(f"rho = {shown} is (epsilon = {rounded_up(result)}, delta = {delta:g})-DP, for {how}")
