"""What a model request costs, from a dated price table (`prices.toml`, and one's own before it)."""

import tomllib
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from evalfarm.contracts.base import Contract, digest
from evalfarm.contracts.run import ModelRequest
from evalfarm.errors import UsageError
from evalfarm.plain_files import read_plain

SHIPPED_TABLE = Path(__file__).with_name("prices.toml")
_MILLION = 1_000_000


class Price(Contract):
    """One entry of a price table: USD per million tokens, for the models that its patterns match."""

    models: tuple[str, ...] = Field(min_length=1)  #: exact names, or patterns with `*` and `?`
    input: float = Field(ge=0, allow_inf_nan=False)  #: input tokens that are not cached
    cached_input: float = Field(ge=0, allow_inf_nan=False)
    #: input tokens newly written to the provider's cache; None: they cost what other input does
    cached_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)  #: reasoning tokens included
    as_of: date
    source: str = Field(min_length=1)
    note: str = ""

    def rank(self, model: str) -> tuple[int, bool] | None:
        """How closely this entry matches a model, to compare by: literal characters, then an exact name.

        None: it does not match.
        """
        ranks = [_literal(pattern) for pattern in self.models if fnmatchcase(model, pattern)]
        return max(ranks, default=None)


class PriceTable(Contract):
    """The entries of one file; no pattern stands in it twice."""

    price: tuple[Price, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_pattern_once(self) -> Self:
        patterns = [pattern for price in self.price for pattern in price.models]
        twice = sorted({pattern for pattern in patterns if patterns.count(pattern) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} has two prices")
        return self


class Prices(Contract):
    """Price tables in the order in which they are asked: the first one that knows a model answers."""

    tables: tuple[PriceTable, ...]

    def price_of(self, model: str) -> Price | None:
        """The entry with the longest match in the first table that has any; None: the price is unknown."""
        for table in self.tables:
            ranked = [(rank, price) for price in table.price if (rank := price.rank(model)) is not None]
            if ranked:
                return max(ranked, key=lambda pair: pair[0])[1]
        return None

    def cost_usd(
        self,
        model: str,
        *,
        input_tokens: int | None,
        cached_tokens: int | None,
        output_tokens: int | None,
        cached_write_tokens: int | None = 0,
    ) -> float | None:
        """USD for one request, per million: (input − cached − written) × input + cached × cached_input
        + written × cached_write + output × output.

        `cached_tokens` and `cached_write_tokens` are the parts of `input_tokens` that the provider's cache served and
        took up; each token is priced once. None, never zero, where the price or a count is unknown or the parts are
        more than came in. Where writing has no price of its own, its count may be unknown.
        """
        price = self.price_of(model)
        if price is None or input_tokens is None or cached_tokens is None or output_tokens is None:
            return None
        if not 0 <= cached_tokens <= input_tokens or output_tokens < 0:
            return None
        read = _input_usd(price, input_tokens - cached_tokens, cached_write_tokens)
        if read is None:
            return None
        return (read + cached_tokens * price.cached_input + output_tokens * price.output) / _MILLION

    @property
    def digest(self) -> str:
        """A digest over every entry, for the manifest. What an entry leaves out is not in it."""
        return digest(self.model_dump(mode="json", exclude_none=True))


def load_prices(path: Path | None) -> Prices:
    """The shipped prices, with the table at `path` (if any) asked before them.

    Raises UsageError when that file cannot be read or is no price table.
    """
    shipped = _read_table(SHIPPED_TABLE)
    return Prices(tables=(shipped,) if path is None else (_read_table(path), shipped))


def _input_usd(price: Price, tokens: int, written: int | None) -> float | None:
    """A million times what input costs that no cache served; `written` of its tokens went into one."""
    if price.cached_write is None:
        return tokens * price.input
    if written is None or not 0 <= written <= tokens:
        return None
    return (tokens - written) * price.input + written * price.cached_write


def _literal(pattern: str) -> tuple[int, bool]:
    wild = sum(pattern.count(sign) for sign in "*?[")
    return len(pattern) - wild, wild == 0


def _read_table(path: Path) -> PriceTable:
    try:
        return PriceTable.model_validate(tomllib.loads(read_plain(path).decode("utf-8")))
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _refused(path, f"{where}: {first['msg']}" if where else first["msg"]) from error
    except ValueError as error:  # TOML that does not parse, bytes that are no UTF-8
        raise _refused(path, str(error)) from error


def _refused(path: Path, why: str) -> UsageError:
    return UsageError(
        f"the price table {path} cannot be used: {why}",
        hint="docs/reference/settings.md shows a table; unset EVALFARM_PRICES to use only the shipped one",
    )


def cost_usd(prices: Prices, model: str, requests: tuple[ModelRequest, ...]) -> float | None:
    """What an attempt's requests cost together; None as soon as one is unknown, zero only where none was answered.

    A refusal costs nothing, whatever it refuses; of a request that got no answer, nobody knows.
    """
    total = 0.0
    for request in requests:
        cost = _cost_of(prices, model, request)
        if cost is None:
            return None
        total += cost
    return total


def side_costs(prices: Prices, model: str, requests: tuple[ModelRequest, ...]) -> tuple[ModelRequest, ...]:
    """The requests, each side call with what it cost, so that a conversation's own cost can be told without them."""
    return tuple(
        request.model_copy(update={"cost_usd": _cost_of(prices, model, request)}) if request.side else request
        for request in requests
    )


def _cost_of(prices: Prices, model: str, request: ModelRequest) -> float | None:
    if request.status is not None and request.status >= 400:
        return 0.0
    return prices.cost_usd(
        model,
        input_tokens=request.input_tokens,
        cached_tokens=request.cached_tokens,
        output_tokens=request.output_tokens,
        cached_write_tokens=request.cached_write_tokens,
    )
