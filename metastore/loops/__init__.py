"""Background loops: each is a ``tick()`` that returns a report; only ``scheduler`` knows intervals and stopping."""
