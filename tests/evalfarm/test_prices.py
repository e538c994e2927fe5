from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import ModelRequest
from evalfarm.errors import UsageError
from evalfarm.prices import Price, Prices, PriceTable, cost_usd, load_prices, side_costs

TOKENS = st.integers(min_value=0, max_value=10**9)
SHIPPED = load_prices(None)


def price(*models: str, usd: float = 1.0) -> Price:
    return Price(models=models, input=usd, cached_input=usd / 10, output=usd * 8, as_of=date(2026, 1, 2), source="s")


def entry(*models: str) -> str:
    names = ", ".join(f'"{model}"' for model in models)
    return f'[[price]]\nmodels = [{names}]\ninput = 3\ncached_input = 2\noutput = 1\nas_of = 2026-01-02\nsource = "s"\n'


def test_cached_input_is_part_of_input_and_priced_once() -> None:
    cost = SHIPPED.cost_usd("gpt-5", input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)
    assert cost == pytest.approx(0.6 * 1.25 + 0.4 * 0.125 + 0.1 * 10.0)


@pytest.mark.parametrize(
    ("cached_write", "written", "usd"),
    [
        (None, 300_000, 0.6 * 4 + 0.4 * 1 + 0.1 * 10),
        (None, None, 0.6 * 4 + 0.4 * 1 + 0.1 * 10),
        (5.0, 300_000, 0.3 * 4 + 0.3 * 5 + 0.4 * 1 + 0.1 * 10),
        (5.0, 0, 0.6 * 4 + 0.4 * 1 + 0.1 * 10),
        (5.0, None, None),
        (5.0, 600_001, None),
    ],
)
def test_what_is_written_to_the_cache_has_its_own_price_where_the_table_has_one(
    cached_write: float | None, written: int | None, usd: float | None
) -> None:
    dear = Price(
        models=("m",), input=4, cached_input=1, cached_write=cached_write, output=10, as_of=date(2026, 1, 2), source="s"
    )
    request = ModelRequest(
        started_s=0.0,
        latency_s=1.0,
        status=200,
        input_tokens=1_000_000,
        cached_tokens=400_000,
        cached_write_tokens=written,
        output_tokens=100_000,
    )
    found = cost_usd(Prices(tables=(PriceTable(price=(dear,)),)), "m", (request,))
    assert found == (None if usd is None else pytest.approx(usd))


def test_simulated_models_cost_nothing_and_say_why() -> None:
    assert SHIPPED.cost_usd("sim-careful", input_tokens=10, cached_tokens=0, output_tokens=10) == 0.0
    found = SHIPPED.price_of("sim-careful")
    assert found is not None
    assert found.note == "simulated: nothing is billed"


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-5-of-tomorrow", (1, 0, 1)),
        ("gpt-5", (None, 0, 1)),
        ("gpt-5", (1, None, 1)),
        ("gpt-5", (1, 0, None)),
        ("gpt-5", (1, 2, 1)),
        ("sim-careful", (None, None, None)),
    ],
)
def test_what_is_not_known_has_no_cost(model: str, tokens: tuple[int | None, int | None, int | None]) -> None:
    fresh, cached, out = tokens
    assert SHIPPED.cost_usd(model, input_tokens=fresh, cached_tokens=cached, output_tokens=out) is None


@given(fresh=TOKENS, cached=TOKENS, out=TOKENS)
def test_caching_never_makes_a_request_dearer(fresh: int, cached: int, out: int) -> None:
    with_cache = SHIPPED.cost_usd("gpt-5", input_tokens=fresh + cached, cached_tokens=cached, output_tokens=out)
    without = SHIPPED.cost_usd("gpt-5", input_tokens=fresh + cached, cached_tokens=0, output_tokens=out)
    assert with_cache is not None
    assert without is not None
    assert 0.0 <= with_cache <= without


@pytest.mark.parametrize(
    ("model", "pattern"),
    [
        ("m", "m"),
        ("m-mini", "m-mini*"),
        ("m-mini-2026-01-01", "m-mini*"),
        ("m-2026-01-01", "m-20??-??-??"),
        ("m-large", "m*"),
        ("n", None),
    ],
)
def test_the_longest_match_wins_and_an_exact_name_before_a_pattern(model: str, pattern: str | None) -> None:
    table = PriceTable(price=tuple(price(each) for each in ("m*", "m", "m-mini*", "m-20??-??-??")))
    found = Prices(tables=(table,)).price_of(model)
    assert (found.models[0] if found else None) == pattern


def test_an_own_table_is_asked_before_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(entry("gpt-5*"))
    prices = load_prices(path)
    assert prices.cost_usd("gpt-5", input_tokens=10**6, cached_tokens=0, output_tokens=0) == 3.0
    assert prices.price_of("gpt-4.1") == SHIPPED.price_of("gpt-4.1")
    assert prices.digest != SHIPPED.digest


def test_the_digest_follows_from_the_content() -> None:
    assert SHIPPED.digest == load_prices(None).digest
    assert SHIPPED.digest.startswith("sha256:")


def test_every_shipped_price_is_dated_and_says_where_it_is_from() -> None:
    for shipped in SHIPPED.tables[0].price:
        assert shipped.as_of <= date(2026, 12, 31)
        assert shipped.source == "evalfarm" or shipped.source.startswith("https://developers.openai.com/")
        assert shipped.cached_input <= shipped.input <= shipped.output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "price: Field required"),
        ("[[price]]\nmodels = [", "Invalid value (at end of document)"),
        (entry("m").replace("input = 3", "input = -3", 1), "price.0.input: Input should be greater than or equal to 0"),
        (entry("m") + "colour = 1\n", "price.0.colour: Extra inputs are not permitted"),
        (entry("m") + entry("m", "n"), "Value error, m has two prices"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_prices(path)
    assert caught.value.message == f"the price table {path} cannot be used: {why}"
    assert "unset EVALFARM_PRICES" in caught.value.hint


def test_a_table_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml cannot be used: No such file or directory"):
        load_prices(tmp_path / "none.toml")


def test_a_side_call_is_told_what_it_cost_and_nothing_else_is() -> None:
    told = {"started_s": 0.0, "latency_s": 1.0, "input_tokens": 10**6, "cached_tokens": 0, "output_tokens": 0}
    own, side = ModelRequest(status=200, **told), ModelRequest(status=200, side=True, **told)
    refused = ModelRequest(status=400, side=True, started_s=0.0, latency_s=1.0)
    found = side_costs(SHIPPED, "gpt-5", (own, side, refused))
    assert [request.cost_usd for request in found] == [None, 1.25, 0.0]
    assert cost_usd(SHIPPED, "gpt-5", found) == 2.5
    assert side_costs(SHIPPED, "nobody-knows-it", (side,)) == (side,)
