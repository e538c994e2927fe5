"""The floor of one-call trials: the openai library asking the same questions, and nothing else.

python -m bench.bare_client BASE_URL CASES REPEATS IN_FLIGHT
"""

import asyncio
import sys

from openai import AsyncOpenAI


async def ask(base_url: str, cases: int, repeats: int, in_flight: int) -> None:
    """Ask every question in every repeat. Raises RuntimeError for an answer that is not the model's."""
    async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:
        left = iter(range(cases * repeats))

        async def asker() -> None:
            for number in left:
                query = f"Case case-{number % cases:03d}: what is the answer? It is 42."
                response = await client.responses.create(model="mock-model", input=query)
                if "42" not in response.output_text:
                    raise RuntimeError(f"an answer without the answer: {response.output_text!r}")

        await asyncio.gather(*(asker() for _ in range(in_flight)))


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1], *(int(number) for number in sys.argv[2:5])))
