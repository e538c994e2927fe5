"""The embedded server: one Valkey on a unix socket per home, shared by all processes that use it.

Nobody has to start or stop it. Four locks in `home/redis/` see to that; the kernel drops a lock when
its holder dies, by whatever death:

    users.lock   shared by every user; the keeper gets it for itself only when the last user has gone
    start.lock   held while a user looks whether there is a server, and starts one if not
    keeper.lock  held by the keeper: free when there is none, so that the server, if there is one, is stopping
    server.lock  held by the keeper and its server together: free when nobody writes the data any more

The **keeper** (`python -m evalfarm.embedded FOLDER SERVER`) is a small process between users and server:
it outlives the user that started it, and stops the server after the last one. The data stay.
"""

from evalfarm.embedded.ending import ending_with
from evalfarm.embedded.server import find_server
from evalfarm.embedded.user import embedded_redis

__all__ = ["embedded_redis", "ending_with", "find_server"]
