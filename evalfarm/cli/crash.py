"""What becomes of an error that nobody expected: a file to report, and one message instead of a traceback."""

import os
import time
import traceback

from evalfarm.errors import UsageError
from evalfarm.settings import Settings, load_settings, public_url


def tell(error: Exception) -> str:
    """Write the error's traceback under EVALFARM_HOME and return the message for the terminal."""
    settings = _settings()
    message = f"evalfarm itself failed: {_without_secrets(f'{type(error).__name__}: {error}', settings)}"
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}.log"
    log = settings.home / "logs" / name
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(_without_secrets("".join(traceback.format_exception(error)), settings), encoding="utf-8")
    except OSError as unwritable:
        return f"{message}\n\nhint: its traceback could not be written to {log}: {unwritable.strerror}"
    return f"{message}\n\nhint: this is a fault of evalfarm's own; report it with its traceback, which is in {log}"


def _settings() -> Settings:
    try:
        return load_settings()
    except UsageError:
        return load_settings({})


def _without_secrets(text: str, settings: Settings) -> str:
    if settings.openai_api_key is not None:
        text = text.replace(settings.openai_api_key.get_secret_value(), "(OPENAI_API_KEY)")
    return "\n".join(public_url(line) if "://" in line else line for line in text.split("\n"))
