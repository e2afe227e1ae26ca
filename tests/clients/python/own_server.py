"""A server for one case, with a configuration of its own."""

import asyncio
import contextlib
import json
import os
import tempfile


class OwnServer:
    def __init__(self, child, peers):
        self._child = child
        self.peers = peers

    def stop(self):
        """Asks it to end."""
        self._child.terminate()


@contextlib.asynccontextmanager
async def serving(peer, configuration, paths):
    """A server whose `peers` are those of the peer's SDK and binding, with the card below each of the paths."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'sabir.toml'), 'w') as file:
            file.write(configuration)
        words = ['serve', '--listen', '127.0.0.1:0', '--store', 'memory:']
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        child = await asyncio.create_subprocess_exec(
            os.environ['SABIR'], *words, cwd=folder, stdin=nothing, stdout=pipe, stderr=nothing
        )
        try:
            url = json.loads(await child.stdout.readline())['url']
            async with contextlib.AsyncExitStack() as closing:
                connecting = [type(peer).connect(url + path, peer.binding) for path in paths]
                yield OwnServer(child, [await closing.enter_async_context(each) for each in connecting])
        finally:
            if child.returncode is None:
                child.terminate()
            await child.wait()
