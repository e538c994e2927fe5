"""Makes the secrets of a farm, a file each, named as the variable that it stands for: `python deploy/make_secrets.py`.

    secrets/users.acl                  for Redis: the users of deploy/redis/users.acl with the digests of new passwords
    secrets/REDIS_URL_{user}           how each of them reaches Redis
    secrets/AWS_ACCESS_KEY_ID …        for the store, which is made with them
    secrets/OPENAI_API_KEY, secrets/TEAM_WEBHOOK    empty: yours to fill in
    secrets/GRAFANA_PASSWORD

A file that is there stays as it is.
"""

import argparse
import hashlib
import re
import secrets
from pathlib import Path

USERS = ("worker", "scheduler", "exporter")
TEMPLATE = Path(__file__).parent / "redis" / "users.acl"


def main() -> None:
    """Make what is missing in a folder."""
    parser = argparse.ArgumentParser(description="Make the secrets of a farm, a file each; what is there stays.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("secrets"))
    parser.add_argument("--redis", default="redis://{login}@redis:6379/0", help="The address, with {login} in it.")
    given = parser.parse_args()
    given.folder.mkdir(mode=0o700, exist_ok=True)
    for name, text in made(given.redis).items():
        path = given.folder / name
        if not path.exists():
            path.write_text(text, encoding="utf-8")
            # The folder is its owner's alone; a container's user must be able to read what is mounted out of it.
            path.chmod(0o644)


def made(redis: str) -> dict[str, str]:
    """New secrets: the name of each file -> what it holds."""
    passwords = {user: secrets.token_urlsafe(24) for user in USERS}
    digests = {user: hashlib.sha256(password.encode()).hexdigest() for user, password in passwords.items()}
    users = re.sub(r"\{(\w+)\}", lambda found: digests[found[1]], TEMPLATE.read_text(encoding="utf-8"))
    # An ACL file takes no comments.
    told = {"users.acl": "".join(f"{line}\n" for line in users.splitlines() if not line.startswith("#"))}
    for user, password in passwords.items():
        told[f"REDIS_URL_{user}"] = redis.replace("{login}", f"{user}:{password}")
    told |= {"AWS_ACCESS_KEY_ID": secrets.token_hex(10), "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(30)}
    return told | {"OPENAI_API_KEY": "", "TEAM_WEBHOOK": "", "GRAFANA_PASSWORD": secrets.token_urlsafe(12)}


if __name__ == "__main__":
    main()
