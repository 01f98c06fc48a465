"""A store in memory that behaves as a real one does: writes are whole, and one of many racing creators wins."""

from __future__ import annotations

import threading


class MemoryStore:
    """`seatrial.ports.Store`; `writes` lists every key written, in order."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.writes: list[str] = []
        self._lock = threading.Lock()

    def read(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def write(self, key: str, data: bytes) -> None:
        with self._lock:
            self._put(key, data)

    def write_once(self, key: str, data: bytes) -> bool:
        with self._lock:
            if key in self.objects:
                return False
            self._put(key, data)
            return True

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def _put(self, key: str, data: bytes) -> None:
        assert key, "a key is not empty"
        assert not key.startswith("/"), "a key has no leading slash"
        self.objects[key] = bytes(data)
        self.writes.append(key)


class BrokenStore(MemoryStore):
    """Dies after so many writes, as a killed process would leave a store."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def _put(self, key: str, data: bytes) -> None:
        if self.left == 0:
            raise ConnectionError("killed")
        self.left -= 1
        super()._put(key, data)
