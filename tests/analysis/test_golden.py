"""Every reference case, computed in advance by two independent implementations, to 1e-8."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from evalfarm.analysis.statistics.comparisons import difference_in_differences
from evalfarm.analysis.statistics.drift import anytime_test, shiryaev_roberts
from evalfarm.analysis.statistics.figures import (
    clopper_pearson,
    figure_change,
    log_t_interval,
    order_interval,
    t_interval,
)
from evalfarm.analysis.statistics.judges import (
    Labelled,
    agreement,
    post_stratified_rate,
    prediction_powered_mean,
    rogan_gladen,
)
from evalfarm.analysis.statistics.latency import latency_quantile
from evalfarm.analysis.statistics.of_k import pass_at_k, pass_hat_k
from evalfarm.analysis.statistics.paired import (
    CaseCounts,
    Difference,
    ExactTest,
    benjamini_hochberg,
    case_counts,
    holm,
    paired_difference,
    rerun_difference,
    rerun_test,
)
from evalfarm.analysis.statistics.planning import (
    cases_for_difference,
    repeats_to_see,
    smallest_drop,
    values_needed,
    variance_of_difference,
)
from evalfarm.analysis.statistics.single_runs import newcombe, p_range_of_totals, tango
from evalfarm.analysis.statistics.stats import Estimate, critical_z, effective_cases, flip_rate, pass_rate, wilson
from evalfarm.analysis.statistics.steadiness import (
    disagreement,
    intraclass_correlation,
    label_disagreement,
    rarefied_flip_rate,
    repeat_spread,
)
from evalfarm.contracts.verdict import Rate

CASES: dict[str, Any] = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))["cases"]
}
Inputs = dict[str, Any]
Values = dict[str, float | None]


def ends(of: Estimate | Rate, low: str = "lo", high: str = "hi", **value: str) -> Values:
    return {low: of.low, high: of.high} | {name: of.value for name in value.values()}


def same_repeats(counts: list[int], repeats: int | list[int]) -> list[int]:
    return repeats if isinstance(repeats, list) else [repeats] * len(counts)


def arm(counts: list[int], repeats: int | list[int]) -> CaseCounts:
    return case_counts(counts, same_repeats(counts, repeats))


def limits(of: tuple[float, float]) -> Values:
    return {"lo": of[0], "hi": of[1]}


def wilson_of(given: Inputs) -> Values:
    return limits(wilson(given["k"] / given["n"], given["n"], critical_z()))


def jeffreys_of(given: Inputs) -> Values:
    # A reference only: the product prefers Wilson's interval, and Clopper and Pearson's against a bar.
    low, high = scipy_stats.beta.ppf([0.025, 0.975], given["k"] + 0.5, given["n"] - given["k"] + 0.5)
    return {"lo": low, "hi": high}


def case_mean(given: Inputs) -> Values:
    found = t_interval(np.array(given["c"]) / given["R"])
    assert found.value is not None
    assert found.high is not None
    se = (found.high - found.value) / scipy_stats.t.ppf(0.975, len(given["c"]) - 1)
    return ends(found, "t_lo", "t_hi", value="mean") | {"se": float(se)}


def wne(given: Inputs) -> Values:
    return ends(pass_rate(given["c"], given["R"]), value="mean")


def wne_with_cases(given: Inputs) -> Values:
    c, r = (np.asarray(given[name], dtype=float) for name in ("c", "R"))
    return wne(given) | {"n_eff": effective_cases(c / r, r)}


def wne_plain(given: Inputs) -> Values:
    return wne(given) | {"n_eff": float(len(given["c"]))}


def flips(given: Inputs, *, ks: tuple[int, ...]) -> Values:
    c, r = given["c"], same_repeats(given["c"], given["R"])
    found: Values = {"F_obs": flip_rate(c, r).value, "D": disagreement(c, r).value}
    return found | {f"F_{k}": rarefied_flip_rate(c, r, k).rate.value for k in ks}


def both_of_k(given: Inputs) -> Values:
    c, k = given["c"], given["k"]
    r = same_repeats(c, given["R"])
    return {
        "pass_hat": pass_hat_k(c, r, k).rate.value,
        "pass_at": pass_at_k(c, r, k).rate.value,
        "plugin_biased_pass_hat": float(np.mean((np.array(c) / r) ** k)),
    }


def hat_of_unequal(given: Inputs) -> Values:
    found = pass_hat_k(given["c"], given["R"], given["k"])
    return {"value": found.rate.value, "n_used": float(found.cases)}


def published_labels(given: Inputs) -> NDArray[np.float64]:
    """108 cases × 3 repeats with the published counts."""
    two = [[float(run != failed) for run in range(3)] for failed in given["fail_run_of_2of3"]]
    one = [[float(run == passed) for run in range(3)] for passed in given["pass_run_of_1of3"]]
    return np.array([[1.0] * 3] * 83 + two + one + [[0.0] * 3] * 2)


def published(given: Inputs) -> Inputs:
    labels = published_labels(given)
    c, r = labels.sum(axis=1), np.full(len(labels), 3.0)
    rate, flipping, d, spread = pass_rate(c, r), flip_rate(c, r), disagreement(c, r), repeat_spread(labels)
    return {
        "run_pass": list(spread.rates),
        "pooled": rate.value,
        "n_eff": effective_cases(c / r, r),
        "lo": rate.low,
        "hi": rate.high,
        "flip_obs": flipping.value,
        "flip_lo": flipping.low,
        "flip_hi": flipping.high,
        "D": d.value,
        "D_neff": effective_cases(2 * c * (3 - c) / 6, r),
        "D_lo": d.low,
        "D_hi": d.high,
        "sd_one_run": spread.sd_one_run.value,
        "sd_observed": spread.sd_observed,
        "cochran_Q": spread.q,
        "cochran_p": spread.p,
        "pass_hat_3": pass_hat_k(c, r, 3).rate.value,
        "pass_at_3": pass_at_k(c, r, 3).rate.value,
        "pass_hat_2": pass_hat_k(c, r, 2).rate.value,
    }


def icc(given: Inputs) -> Values:
    published_c = published_labels(CASES["published_fixture"]["inputs"]).sum(axis=1)
    return {
        "icc": intraclass_correlation(given["c"], same_repeats(given["c"], given["R"])),
        "icc_published_fixture": intraclass_correlation(published_c, np.full(108, 3)),
    }


def cochran(given: Inputs) -> Values:
    spread = repeat_spread(given["x"])
    return {"Q": spread.q, "p": spread.p}


def mcnemar(given: Inputs) -> Values:
    only_first, only_second = given["b"], given["c"]
    found = rerun_test(
        arm([1] * only_first + [0] * only_second, 1),
        arm([0] * only_first + [1] * only_second, 1),
    )
    return {"exact": found.two_sided, "midp": found.two_sided_mid}


def newcombe_of(given: Inputs) -> Values:
    return ends(newcombe(given["a"], given["b"], given["c"], given["d"]), value="diff")


def tango_of(given: Inputs) -> Values:
    return ends(tango(given["b"], given["c"], given["n"]))


def differences(given: Inputs) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = (np.array(given["cB"]) - np.array(given["cA"])) / given["R"]
    return shares


def bpt(found: Difference, name: str = "diff") -> Values:
    return ends(found.estimate, value=name)


def paired_t(given: Inputs) -> Values:
    # The plain t test is used on logarithms of figures; exponentials of the differences lead back to them.
    change = figure_change(np.ones(len(given["cA"])), np.exp(differences(given)))
    return ends(t_interval(differences(given))) | {"t": change.t, "p": change.p}


def exact(found: ExactTest) -> Values:
    return {"p_exact": found.lower, "p_mid": found.lower_mid, "p_upper": found.upper}


def cmh(given: Inputs) -> Values:
    return exact(rerun_test(arm(given["baseline_c"], given["R"]), arm(given["new_c"], given["R"])))


def cmh_unequal(given: Inputs) -> Values:
    baseline = arm(given["baseline_c"], given["baseline_R"])
    return exact(rerun_test(baseline, arm(given["new_c"], given["new_R"])))


def one_broken(given: Inputs) -> Values:
    found = exact(rerun_test(arm([15] * 6, 15), arm([0] + [3] * 5, 3)))
    return {name: found[name] for name in ("p_exact", "p_mid")}


def totals(given: Inputs) -> Values:
    least, most = p_range_of_totals(given["A"], given["B"], given["n"])
    return {"p_min": least, "p_max": most}


def did(given: Inputs) -> Values:
    a1, b1, a2, b2 = (arm(given[cell], given["R"]) for cell in ("A1", "B1", "A2", "B2"))
    return bpt(difference_in_differences((a1, b1), (a2, b2)).difference, "did")


def numbered(values: tuple[float, ...], name: str) -> Inputs:
    return {name: list(values)}


def order_of(size: int, q: float) -> Values:
    return ends(order_interval(np.arange(1, size + 1), q))


def order_least(given: Inputs) -> Values:
    return {
        "n_p95_two": values_needed(0.95),
        "n_p95_one": values_needed(0.95, two_sided=False),
        "n_p50_two": values_needed(0.5),
        "n_p99_two": values_needed(0.99),
    }


def latency(given: Inputs) -> Values:
    table, q = np.array(given["latency_cases_x_trials"]), given["q"]
    order = np.argsort(table, axis=None)
    found = latency_quantile(order // table.shape[1], table.ravel()[order], q)
    shares = (table <= np.float64(found.value)).mean(axis=1)
    worth = effective_cases(shares, np.full(len(table), float(table.shape[1])))
    low, high = clopper_pearson(q, worth)
    return ends(found, value="q_hat") | {"n_eff": worth, "plo": low, "phi": high}


def mean(given: Inputs) -> Values:
    plain, logged = t_interval(given["x"]), log_t_interval(given["x"])
    return ends(plain, "t_lo", "t_hi", value="mean") | ends(logged, "logt_lo", "logt_hi")


def drops(given: Inputs) -> Values:
    d, n = given["D"], given["n"]
    return {
        "mde": smallest_drop(d, n, 3, 3),
        "mde_base15": smallest_drop(d, n, 3, 15),
        "mde_alpha01_base30": smallest_drop(d, n, 3, 30, alpha=0.01),
    }


def miller(given: Inputs) -> Values:
    spread = (given["omega2"], given["sigA2"], given["sigB2"])
    return {
        name: cases_for_difference(given["delta"], variance_of_difference(*spread, repeats))
        for name, repeats in (("n_raw", 1), ("n_K10", 10), ("n_Kinf", float("inf")))
    }


def kappa(given: Inputs) -> Values:
    (both_pass, judge_fails), (judge_passes, both_fail) = given["table_human_by_judge"]
    found = agreement(both_pass, judge_fails, judge_passes, both_fail)
    return ends(found.kappa, value="kappa") | {"se": found.kappa_se}


def corrected(given: Inputs) -> Values:
    kept, caught = Labelled(given["TP"], given["pos"]), Labelled(given["TN"], given["neg"])
    return ends(rogan_gladen(Labelled(given["judge_pass"], given["n"]), kept, caught), value="point")


def stratified(given: Inputs) -> Values:
    passed = Labelled(given["judgePASS_human_pass"], given["judgePASS_labelled"])
    failed = Labelled(given["judgeFAIL_human_pass"], given["judgeFAIL_labelled"])
    return ends(post_stratified_rate(270 / 324, given["n_eff"], passed, failed), value="est")


def powered(given: Inputs, *, tuned: bool) -> Values:
    found = prediction_powered_mean(given["Y"], given["Yhat"], [1.0] * 40 + [0.0] * 10, tuned=tuned)
    return ends(found, value="est")


def martingale(given: Inputs) -> Values:
    found = anytime_test(given["s"], given["f"], given["p0"])
    return {"e_value": found.e_value, "cs_lo": found.low, "cs_hi": found.high}


def rerun(given: Inputs) -> Values:
    found, error = rerun_difference(arm(given["cA"], given["R"]), arm(given["cB"], given["R"]))
    return ends(found, value="diff") | {"se": error}


CHECKS: dict[str, Callable[[Inputs], Inputs]] = {
    "wilson_17_20": wilson_of,
    "wilson_5_5": wilson_of,
    "wilson_0_5": wilson_of,
    "wilson_23_108": wilson_of,
    "clopper_5_5": lambda given: limits(clopper_pearson(given["k"] / given["n"], given["n"])),
    "jeffreys_17_20": jeffreys_of,
    "case_mean_t": case_mean,
    "wne_small": wne_with_cases,
    "wne_allpass": wne_plain,
    "wne_unanimous": wne_plain,
    "wne_capped": wne_with_cases,
    "wne_unequalR": wne_with_cases,
    "pass_at_k": lambda given: {"value": pass_at_k([given["c"]], [given["n"]], given["k"]).rate.value},
    "pass_at_k_10": lambda given: {"value": pass_at_k([given["c"]], [given["n"]], given["k"]).rate.value},
    "pass_hat_k": lambda given: {"value": pass_hat_k([given["c"]], [given["n"]], given["k"]).rate.value},
    "pass_set_k2": both_of_k,
    "pass_hat_unequalR": hat_of_unequal,
    "flip_small": lambda given: flips(given, ks=(2, 3)),
    "flip_rarefy": lambda given: flips(given, ks=(3, 5)),
    "flip_3label": lambda given: {"D": label_disagreement(given["label_counts"]).value},
    "published_fixture": published,
    "icc_anova": icc,
    "cochran_q": cochran,
    "mcnemar_1_7": mcnemar,
    "newcombe_paired_1_1_7_12": newcombe_of,
    "newcombe_paired_101_0_1_6": newcombe_of,
    "tango_1_7_21": tango_of,
    "paired_bpt": lambda given: bpt(paired_difference(differences(given))),
    "paired_t": paired_t,
    "paired_bpt_all_equal": lambda given: bpt(paired_difference(np.zeros(108))),
    "cmh_exact": cmh,
    "cmh_exact_unequalR": cmh_unequal,
    "cmh_one_broken_case": one_broken,
    "published_74_64_bounds": totals,
    "did_bpt": did,
    "bh": lambda given: numbered(benjamini_hochberg(given["p"]), "q"),
    "holm": lambda given: numbered(holm(given["p"]), "p_adj"),
    "order_ci_15_0.5": lambda given: order_of(15, 0.5),
    "order_ci_100_0.95": lambda given: order_of(100, 0.95),
    "order_ci_min_n": order_least,
    "quantile_kg_p50": latency,
    "mean_ci": mean,
    "mde_fixed_cases": drops,
    "miller_n": miller,
    "repeats_to_see_flake": lambda given: {"R": repeats_to_see(0.1), "R_f02": repeats_to_see(0.02)},
    "kappa": kappa,
    "rogan_gladen": corrected,
    "ppi_mean_lam1": lambda given: powered(given, tuned=False),
    "ppi_mean_tuned": lambda given: powered(given, tuned=True),
    "judge_poststrat": stratified,
    "beta_mixture_martingale": martingale,
    "sr_edetector": lambda given: numbered(shiryaev_roberts(given["z"], given["lambda"]), "R"),
    "fixed_case_diff": rerun,
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_reference_case_is_reproduced(name: str) -> None:
    case = CASES[name]
    found = CHECKS[name](case["inputs"])
    assert found.keys() == case["expected"].keys()
    for key, value in case["expected"].items():
        assert found[key] == pytest.approx(value, abs=case["tol_abs"], rel=0), key


def test_every_check_has_its_reference_case() -> None:
    assert CHECKS.keys() == CASES.keys()
