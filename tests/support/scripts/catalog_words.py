"""Commands about what the catalog and the compaction queue have to do with transactions."""

from tests.support.scripts.names import split, where


class CatalogWords:
    """Commands about what the catalog and the compaction queue have to do with transactions."""

    def _make(self, words):
        place, *pairs = words
        self.world.make(where(place), dict(pair.split("=", 1) for pair in pairs))
        return [f"{place}: made"]

    def _drop(self, words):
        return [line for place in words
                for line in self.said(place, lambda place=place: self.world.drop(where(place)) or "dropped")]

    def _rename(self, words):
        place, name = words
        return self.said(place, lambda: self.world.rename(where(place), name) or f"is {name} now")

    def _parameter(self, words):
        place, key = words
        return [f"{place}: {key} is {self.world.parameter(where(place), key) or 'not set'}"]

    def _compactions(self, _):
        return [f"{place}: {kind} {state}" for place, kind, state in self.world.compactions()] or ["no compactions"]

    def _rebuild(self, words):
        name, view = words
        db, table, _ = split(view)

        def asked():
            answer = self.world.get_lock_materialization_rebuild(db, table, self.id(name))
            state = self._of(self.types.LockState, answer.state).replace("_", " ")
            return state if answer.lockid == self.id(name) else f"{state}, as {self.txn_name(answer.lockid)}"
        return self.said(name, asked)

    def _rebuild_heartbeat(self, words):
        name, view = words
        db, table, _ = split(view)
        held = self.world.heartbeat_lock_materialization_rebuild(db, table, self.id(name))
        return [f"{name}: {'rebuilds' if held else 'does not rebuild'} {view}"]
