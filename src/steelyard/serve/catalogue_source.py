"""Which results are shown: those of a catalogue, or those below a folder, which is looked through again."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.catalogue import Catalogue
from steelyard.catalogue.folder import read_folder, stamp_of
from steelyard.catalogue.scan import find_results
from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.serve.computing import MOST_WAITING, Found, TooBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from steelyard.catalogue import Entry, Filter, Page, Verified
    from steelyard.serve.computing import Computing

IDENTIFIER: Final = re.compile(r"[0-9a-f]{10}")
_DEEPEST: Final = 4
_MOST_FOLDERS: Final = 50_000
_PERIOD_S: Final = 3.0
"""Between two looks through a folder [s]; nobody looks unless somebody asks for a page."""
_TOGETHER: Final = 20
_PATIENCE_S: Final = 8.0
"""After which a page shows what is known; the other folders are read meanwhile [s]."""
_BUSY_S: Final = 0.2
"""Until the next folders are read, where others wait for what is computed [s]."""
_TRIES: Final = 3


class Results:
    """The results that pages show.

    Parameters
    ----------
    address : str or None
        Catalogue; ``None`` takes the user's.
    """

    unread = 0
    """Folders that are known to be there and not read yet."""

    def __init__(self, address: str | None = None) -> None:
        self._address = self._lasting = address
        self._asked = 0

    @property
    def place(self) -> str:
        """What is shown, for the head of the page."""
        with Catalogue.at(self._address) as catalogue:
            return catalogue.address

    async def entries(self, wanted: Filter, order: str, limit: int, offset: int) -> Page:
        """Give a page of results."""
        return await self._found(lambda: self._entries(wanted, order, limit, offset))

    async def entry(self, identifier: str) -> Entry:
        """Give one result by its whole id.

        Raises
        ------
        DataError
            If there is none.
        """
        return await self._found(lambda: self._entry(identifier))

    async def _found(self, query: Callable[[], Found]) -> Found:
        """Ask the catalogue; whoever asks hundreds of times at once keeps nobody waiting for minutes."""
        if self._asked >= MOST_WAITING:
            message = f"{self._asked} questions to the catalogue are waiting"
            raise TooBusyError(message, hint="try again in a few seconds")
        self._asked += 1
        try:
            return await asyncio.to_thread(query)
        finally:
            self._asked -= 1

    async def verified(self, folder: Path) -> Verified | None:
        """Give what came of verifying a folder, as far as a catalogue keeps it."""
        return await asyncio.to_thread(self._verified, folder)

    async def keep_verified(self, folder: Path, verified: Verified) -> bool:
        """Keep what came of verifying a folder; say whether a catalogue does."""
        return await asyncio.to_thread(self._keep_verified, folder, verified)

    def close(self) -> None:
        """Leave nothing behind."""

    # Of a folder that is served, the user's own catalogue keeps it, if the result is in it: that of the
    # server ends with the server.
    def _verified(self, folder: Path) -> Verified | None:
        with suppress(SteelyardError), Catalogue.at(self._lasting) as catalogue:
            return catalogue.verified(folder)
        return None

    def _keep_verified(self, folder: Path, verified: Verified) -> bool:
        with suppress(SteelyardError), Catalogue.at(self._lasting) as catalogue:
            return catalogue.keep_verified(folder, verified)
        return False

    def _entries(self, wanted: Filter, order: str, limit: int, offset: int) -> Page:
        with Catalogue.at(self._address) as catalogue:
            return catalogue.entries(wanted, order, limit=limit, offset=offset)

    def _entry(self, identifier: str) -> Entry:
        # A catalogue takes paths as well: only ids may come from outside.
        if IDENTIFIER.fullmatch(identifier):
            with Catalogue.at(self._address) as catalogue:
                found = catalogue.entry(identifier)
                if found.id == identifier:
                    return found
        message = f"there is no result `{identifier[:40]}`"
        raise DataError(message, hint="the list shows all there are", code="data.result")


class FolderResults(Results):
    """The results below a folder, in a catalogue of this server's own.

    Parameters
    ----------
    folder : Path
        Looked through to a depth of four.
    computing : Computing
        Where folders are read.

    Raises
    ------
    UsageError
        If it is not a folder.
    """

    def __init__(self, folder: Path, computing: Computing) -> None:
        if not folder.is_dir():
            message = f"cannot serve `{folder}`: it is not a folder"
            raise UsageError(message, hint="give the folder that holds result folders")
        self._folder = Path(os.path.realpath(folder))
        self._computing = computing
        self._data = tempfile.TemporaryDirectory(prefix="steelyard-serve-")
        self._file = str(Path(self._data.name) / "catalogue.sqlite")
        super().__init__(self._file)
        self._lasting = None
        self._known: dict[Path, str] = {}
        self._said: set[Path] = set()
        self._looked_s = float("-inf")
        self._looking = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._registering: asyncio.Task[None] | None = None

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    async def entries(self, wanted: Filter, order: str, limit: int, offset: int) -> Page:
        """Give a page of results; new ones are found first."""
        await self._look()
        return await super().entries(wanted, order, limit, offset)

    async def entry(self, identifier: str) -> Entry:
        """Give one result as its folder is now; one that is not known yet is looked for."""
        try:
            found = await super().entry(identifier)
        except DataError:
            await self._look()
            found = await super().entry(identifier)
        stamp = await asyncio.to_thread(stamp_of, found.folder)
        is_as_known = found.state == "missing" or stamp == self._known.get(found.folder)
        # Where the list says a problem, such as findings that are too large for it, there is no verdict.
        is_owed = found.state == "complete" and not found.verdict and not found.problem
        lacks_verdict = is_owed and found.folder not in self._said
        if is_as_known and not lacks_verdict:
            return found
        self._known[found.folder] = stamp
        self._said.add(found.folder)
        await self._computing.run(_register, self._file, [found.folder], says_verdict=True)
        return await super().entry(identifier)

    def close(self) -> None:
        """Remove the catalogue."""
        for task in (self._reading, self._registering):
            if task is not None:
                task.cancel()
        self._data.cleanup()

    async def _look(self) -> None:
        """Find folders that are new or have changed; what their reports say is read afterwards."""
        async with self._looking:
            is_registering = self._registering is not None and not self._registering.done()
            if is_registering or time.monotonic() - self._looked_s < _PERIOD_S:
                return
            found = await asyncio.to_thread(_stamps, self._folder)
            self._registering = asyncio.create_task(self._register(found))
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._registering), _PATIENCE_S)

    async def _register(self, found: dict[Path, str]) -> None:
        """Put what is new or has changed into the catalogue."""
        changed = [each for each, stamp in found.items() if self._known.get(each) != stamp]
        owed: list[Path] = []
        self.unread = len(changed)
        parts = deque(changed[begin : begin + _TOGETHER] for begin in range(0, len(changed), _TOGETHER))
        tries: Counter[Path] = Counter()
        while parts:
            part = parts.popleft()
            try:
                owed += await self._computing.run(_register, self._file, part, says_verdict=False)
            except TooBusyError:
                # Others may wait, or one of these cannot be read in time: that one alone is left out.
                tries.update(part)
                parts += [[each] for each in part if tries[each] < _TRIES]
                self.unread -= sum(tries[each] == _TRIES for each in part)
                await asyncio.sleep(_BUSY_S)
                continue
            self._known |= {each: found[each] for each in part}
            self._said -= set(part)
            self.unread -= len(part)
        self._looked_s = time.monotonic()
        if owed and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read(owed))

    async def _read(self, folders: list[Path]) -> None:
        for folder in folders:
            if folder in self._said:
                continue
            try:
                await self._computing.run(_register, self._file, [folder], says_verdict=True)
            except TooBusyError:
                continue  # it is listed without its first sentence


def _stamps(folder: Path) -> dict[Path, str]:
    return {each: stamp_of(each) for each in find_results(folder, _DEEPEST, _MOST_FOLDERS)}


def _register(address: str, folders: Iterable[Path], *, says_verdict: bool) -> list[Path]:
    """Put folders into the catalogue; give those that have findings to make a sentence of."""
    read = [read_folder(each, says_verdict=says_verdict) for each in folders]
    with Catalogue.at(address) as catalogue:
        catalogue.put(read)
    return [each.entry.folder for each in read if each.verdicts]
